// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/plan"
)

// person is whom the command runs as.
type person struct {
	name, home string
	uid, gid   uint32
	groups     []uint32
	jail       []plan.Variable // of the environment
	confined   *config.Jail    // what its tasks give up, the command does too; nil: nothing
}

func lookup(name string) (*person, error) {
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.LookupId(name); err != nil {
			return nil, fmt.Errorf("this node knows no user %q", name)
		}
	}
	p := &person{name: u.Username, home: u.HomeDir}
	if p.uid, err = id(u.Uid); err != nil {
		return nil, err
	}
	if p.gid, err = id(u.Gid); err != nil {
		return nil, err
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("cannot look up the groups of user %s: %w", name, err)
	}
	for _, text := range groups {
		gid, err := id(text)
		if err != nil {
			return nil, err
		}
		p.groups = append(p.groups, gid)
	}
	return p, nil
}

func id(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}

func (p *person) groupList() string {
	var list []string
	for _, gid := range p.groups {
		list = append(list, strconv.FormatUint(uint64(gid), 10))
	}
	return strings.Join(list, ",")
}

func (p *person) path() string {
	path := "/usr/local/bin:/usr/bin:/bin"
	if p.uid == 0 {
		path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	for _, v := range p.jail {
		if v.Prepend && v.Name == "PATH" {
			path = v.Value + ":" + path
		}
	}
	return path
}

// shell and directory are asked inside the jail.
func (p *person) shell() string {
	for _, path := range []string{"/bin/bash", "/usr/bin/bash"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "/bin/sh"
}

func (p *person) directory() string {
	if st, err := os.Stat(p.home); err == nil && st.IsDir() && p.home != "" {
		return p.home
	}
	return "/"
}

func (p *person) environment() []string {
	env := []string{"PATH=" + p.path(), "HOME=" + p.directory(), "USER=" + p.name, "LOGNAME=" + p.name, "SHELL=" + p.shell()}
	for _, name := range []string{"TERM", "LANG", "TZ"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	for _, v := range p.jail {
		if v.Name != "PATH" { // nothing else of the environment is a list
			env = append(env, v.Name+"="+v.Value)
		}
	}
	return env
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/user"
	"strconv"
	"strings"
)

// person is whom the command runs as.
type person struct {
	name, home string
	uid, gid   uint32
	groups     []uint32
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

// words are the person's for gojail-launcher.
func (p *person) words() []string {
	var groups []string
	for _, gid := range p.groups {
		groups = append(groups, strconv.FormatUint(uint64(gid), 10))
	}
	return []string{fmt.Sprintf("uid=%d", p.uid), fmt.Sprintf("gid=%d", p.gid), "groups=" + strings.Join(groups, ",")}
}

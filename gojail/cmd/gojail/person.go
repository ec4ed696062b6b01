// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/user"
	"strconv"
	"strings"

	"github.com/gojail/gojail/gojail/config"
)

// person is the user that a command of `gojail run` or `gojail enter` runs as.
type person struct {
	name, home string
	uid, gid   uint32
	groups     []uint32
}

// findPerson finds a user by name or number in the node's account files and directory services.
func findPerson(name string) (*person, error) {
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.LookupId(name); err != nil {
			return nil, fmt.Errorf("there is no user %q on this node", name)
		}
	}
	p := &person{name: u.Username, home: u.HomeDir}
	if p.uid, err = config.ParseID(u.Uid); err != nil {
		return nil, err
	}
	if p.gid, err = config.ParseID(u.Gid); err != nil {
		return nil, err
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("cannot look up the groups of user %s: %w", name, err)
	}
	for _, text := range groups {
		gid, err := config.ParseID(text)
		if err != nil {
			return nil, err
		}
		p.groups = append(p.groups, gid)
	}
	return p, nil
}

// formatArguments returns the arguments of gojail-launcher that name the user.
func (p *person) formatArguments() []string {
	var groups []string
	for _, gid := range p.groups {
		groups = append(groups, strconv.FormatUint(uint64(gid), 10))
	}
	return []string{fmt.Sprintf("uid=%d", p.uid), fmt.Sprintf("gid=%d", p.gid), "groups=" + strings.Join(groups, ",")}
}

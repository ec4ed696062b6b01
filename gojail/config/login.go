// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/internal/hostlist"
)

// Limits and default of the key linger.
const (
	lingerMin     = time.Second
	lingerMax     = 24 * time.Hour
	lingerDefault = 10 * time.Minute
)

// loginAccountsMax is the limit of accounts in all rules: each is a line at the head of the site file.
const loginAccountsMax = 256

// parseLogin returns the table [login], with defaults filled in.
func (s *source) parseLogin(f *file, node string) (Login, error) {
	login := Login{Linger: lingerDefault}
	if f.Login == nil {
		return login, nil
	}
	var err error
	if login.Here, err = s.parseLoginNodes(f.Login.Nodes, node); err != nil {
		return login, err
	}
	if text := f.Login.Linger; text != nil {
		d, err := time.ParseDuration(*text)
		if err != nil || d < lingerMin || d > lingerMax {
			return login, s.refuse([]string{"login", "linger"}, `%q: write a time from "1s" to "24h", such as "10m"`,
				*text)
		}
		login.Linger = d
	}
	login.Rules, err = s.parseLoginRules(f)
	return login, err
}

// parseLoginNodes reports whether this node is one of the login nodes.
func (s *source) parseLoginNodes(nodes []string, node string) (bool, error) {
	key := []string{"login", "nodes"}
	if len(nodes) == 0 {
		return false, fmt.Errorf(`login.nodes is missing: write the names of the login nodes, such as ["login[1-2]"]`)
	}
	list, err := hostlist.Parse(strings.Join(nodes, ","))
	if err != nil {
		return false, s.refuse(key, "%v", err)
	}
	return node != "" && list.Contains(node), nil
}

// parseLoginRules returns the rules, and the key jail as the last one.
func (s *source) parseLoginRules(f *file) ([]LoginRule, error) {
	rules, key := slices.Clone(f.Login.Rules), []string{"login", "rules"}
	accounts := 0
	for i, rule := range rules {
		all := slices.Concat(rule.Users, rule.Groups)
		accounts += len(all)
		if len(all) == 0 {
			return nil, s.refuse(key, "rule %d names no users and no groups; the jail of all others is login.jail", i+1)
		}
		if bad := slices.IndexFunc(all, IsBadAccount); bad >= 0 {
			return nil, s.refuse(key, "%q is not a name or a number", all[bad])
		}
	}
	if accounts > loginAccountsMax {
		return nil, s.refuse(key, "name %d users and groups; at most %d are supported", accounts, loginAccountsMax)
	}
	if f.Login.Jail != nil {
		rules = append(rules, LoginRule{Jail: *f.Login.Jail})
		key = []string{"login", "jail"}
	}
	if len(rules) == 0 {
		return nil, fmt.Errorf("login.jail is missing: write the name of the jail in which sessions on login nodes are")
	}
	for _, rule := range rules {
		if _, ok := f.Jail[rule.Jail]; !ok {
			return nil, s.refuse(key, "there is no [jail.%s]; the jails are: %s", rule.Jail,
				strings.Join(slices.Sorted(maps.Keys(f.Jail)), ", "))
		}
	}
	return rules, nil
}

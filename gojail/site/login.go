// SPDX-License-Identifier: Apache-2.0

package site

import (
	"fmt"
	"strings"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
)

// writeLogin writes whether this node is a login node, how long a sandbox stays there after the last session, and the
// jails of users and groups. The first line that names the user counts. A line with a name that cannot be looked up may
// name the user, whose jail is then unknown: no later line may take its place.
func writeLogin(b *strings.Builder, login *config.Login, accounts Accounts) {
	if !login.Here {
		b.WriteString("login 0\n")
		return
	}
	fmt.Fprintf(b, "login %d\n", login.Linger.Milliseconds())
	for _, rule := range login.Rules {
		uids, users := resolveAccounts(rule.Users, accounts.UID)
		gids, groups := resolveAccounts(rule.Groups, accounts.GID)
		for _, id := range uids {
			fmt.Fprintf(b, "rule %s uid %d\n", rule.Jail, id)
		}
		for _, id := range gids {
			fmt.Fprintf(b, "rule %s gid %d\n", rule.Jail, id)
		}
		for _, name := range users {
			fmt.Fprintf(b, "rule %s unknown-user %s\n", rule.Jail, cutName(name))
		}
		for _, name := range groups {
			fmt.Fprintf(b, "rule %s unknown-group %s\n", rule.Jail, cutName(name))
		}
		if len(rule.Users)+len(rule.Groups) == 0 {
			fmt.Fprintf(b, "rule %s all 0\n", rule.Jail)
		}
	}
}

// cutName shortens a name to the longest that C reads. No account has a longer name.
func cutName(name string) string {
	if len(name) > contract.LoginNameMax {
		return strings.ToValidUTF8(name[:contract.LoginNameMax], "")
	}
	return name
}

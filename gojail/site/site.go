// SPDX-License-Identifier: Apache-2.0

// Package site compiles the configuration into the site file, which the plugin reads.
package site

import (
	"cmp"
	"fmt"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/trusted"
)

// unknownRetry is the interval after which an unknown user or group, or a missing CDI device, is looked
// up again: a service may not have started yet.
const unknownRetry = 60 * time.Second

// Accounts resolves names. Tests replace it, so that they need no accounts of the machine.
type Accounts struct {
	UID func(name string) (uint32, error)
	GID func(name string) (uint32, error)
}

// SystemAccounts returns Accounts that use the node's name service (nsswitch.conf(5)).
func SystemAccounts() Accounts {
	return Accounts{
		UID: func(name string) (uint32, error) {
			u, err := user.Lookup(name)
			if err != nil {
				return 0, err
			}
			return config.ParseID(u.Uid)
		},
		GID: func(name string) (uint32, error) {
			g, err := user.LookupGroup(name)
			if err != nil {
				return 0, err
			}
			return config.ParseID(g.Gid)
		},
	}
}

// resolveAccounts returns the ids of names and numbers, sorted, and the names that are unknown.
func resolveAccounts(names []string, lookup func(string) (uint32, error)) (ids []uint32, unknown []string) {
	for _, name := range names {
		id, err := lookup(name)
		if err != nil {
			id, err = config.ParseID(name)
		}
		if err != nil {
			unknown = append(unknown, name)
			continue
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids), unknown
}

// Unknown returns the users and groups that the configuration names and that do not exist.
func Unknown(c *config.Config, accounts Accounts) (list []string) {
	add := func(users, groups []string, where string) {
		_, users = resolveAccounts(users, accounts.UID)
		_, groups = resolveAccounts(groups, accounts.GID)
		for _, u := range users {
			list = append(list, fmt.Sprintf("user %s of %s", u, where))
		}
		for _, g := range groups {
			list = append(list, fmt.Sprintf("group %s of %s", g, where))
		}
	}
	for _, name := range c.JailNames() {
		add(c.Jails[name].Users, c.Jails[name].Groups, "jail "+name)
	}
	add(nil, c.Session.Exempt, "session.exempt")
	for _, rule := range c.Login.Rules {
		add(rule.Users, rule.Groups, "login.rules")
	}
	return list
}

// Networks is the part of network.toml that goes into the site file.
type Networks struct {
	Identity *trusted.Identity // nil: there is no network.toml
	Default  string            // value of its key default
}

// facts are what the site file says beyond gojail.toml.
type facts struct {
	hardware *node.Hardware
	networks Networks
	accounts Accounts
}

// compile returns the text of the site file, in the format of docs/state.md. keys has each jail's key
// (see Key), and filters the file of its seccomp program.
func compile(c *config.Config, f facts, keys, filters map[string]string, now time.Time) (string, error) {
	until := int64(0)
	if len(Unknown(c, f.accounts)) > 0 || f.hardware.IsLackingCDI() {
		until = now.Add(unknownRetry).Unix()
	}
	none := map[bool]string{true: "allow", false: "refuse"}[c.AllowNone]
	network := "-"
	if f.networks.Identity != nil {
		network = f.networks.Identity.String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "gojail-site %d\n", contract.Version)
	fmt.Fprintf(&b, "config %s\nnetwork %s\n", c.Identity, network)
	fmt.Fprintf(&b, "until %d\ndefault %s\nnone %s\n", until, c.Default, none)
	fmt.Fprintf(&b, "deadline %d\nscratch %s\n", c.Deadline.Milliseconds(), c.Scratch)
	fmt.Fprintf(&b, "summary %s\n", cmp.Or(c.Slurm.Summary, "-"))
	fmt.Fprintln(&b, formatSession(&c.Session, f.accounts))
	writeLogin(&b, &c.Login, f.accounts)
	for _, name := range c.JailNames() {
		if err := writeJail(c, f, &b, c.Jails[name], keys[name], filters[name]); err != nil {
			return "", err
		}
	}
	b.WriteString("end\n")
	if b.Len() > contract.SiteMax {
		return "", fmt.Errorf("%s: compiles to more than %d bytes; use groups instead of long lists of users", c.Path,
			contract.SiteMax)
	}
	return b.String(), nil
}

// formatSession returns the line that gojail-session reads.
func formatSession(s *config.Session, accounts Accounts) string {
	gids, _ := resolveAccounts(s.Exempt, accounts.GID)
	words := []string{"session", s.WithoutJob, s.Shell, "-"}
	if len(gids) > 0 {
		words[3] = strings.Trim(strings.ReplaceAll(fmt.Sprint(gids), " ", ","), "[]")
	}
	return strings.Join(words, " ")
}

// writeJail writes the lines of one jail, in the order in which C reads them (parse_jail in spank/common/site.c).
func writeJail(c *config.Config, f facts, b *strings.Builder, j *config.Jail, key, filter string) error {
	fmt.Fprintf(b, "jail %s\nkey %s\nsource %s\n", j.Name, key, j.Root)
	quota := int64(0)
	if j.Tmp == config.TmpDisk {
		quota = j.TmpSize
	}
	fmt.Fprintf(b, "quota %d\nspool %s\n", quota, c.Slurm.Spool)
	for _, m := range plan.OwnMounts(c, f.hardware, j) {
		fmt.Fprintln(b, formatMount(m))
	}
	fmt.Fprintf(b, "net %s\n", cmp.Or(j.Network, f.networks.Default, config.None))
	edits, _ := f.hardware.CDIEdits(j) // without devices that cannot be provided, no job gets the jail
	for _, v := range plan.Environment(edits) {
		fmt.Fprintf(b, "%s %s=%s\n", map[bool]string{true: "prepend", false: "env"}[v.Prepend], v.Name, v.Value)
	}
	if err := writeGPUs(c, f.hardware, b, j); err != nil {
		return err
	}
	fmt.Fprintf(b, "isolate %s\nbounding %x\nroot %s\nseccomp %s\n", j.Isolation.Words(), j.Isolation.Bounding(),
		cmp.Or(strings.Join(j.Isolation.JailRoot, " "), "-"), cmp.Or(filter, "-"))
	if j.IsOpenToAll() {
		b.WriteString("access all\n")
		return nil
	}
	b.WriteString("access listed\n")
	uids, _ := resolveAccounts(j.Users, f.accounts.UID)
	gids, _ := resolveAccounts(j.Groups, f.accounts.GID)
	for _, id := range uids {
		fmt.Fprintf(b, "uid %d\n", id)
	}
	for _, id := range gids {
		fmt.Fprintf(b, "gid %d\n", id)
	}
	return nil
}

// Write compiles c into STATE/site. Processes take turns by a lock; Write fails if it cannot get the lock
// by the deadline.
func Write(c *config.Config, networks Networks, stateDir string, deadline time.Time) error {
	f := facts{node.ReadHardware(c), networks, SystemAccounts()}
	keys := map[string]string{}
	for name, j := range c.Jails {
		keys[name] = Key(c, f.hardware, j)
	}
	unlock, err := filelock.Lock(filepath.Join(stateDir, "site.lock"), deadline)
	if err != nil {
		return err
	}
	defer unlock()
	filters, err := writeFilters(c, stateDir)
	if err != nil {
		return err
	}
	text, err := compile(c, f, keys, filters, time.Now())
	if err != nil {
		return err
	}
	return state.ReplaceFile(filepath.Join(stateDir, contract.SiteFile), text)
}

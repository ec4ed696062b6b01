// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/wholefile"
)

// unknownRetry is how soon a user or group that nobody knows, or a CDI device that
// is not there, is looked up again: a service may not have started yet.
const unknownRetry = 60 * time.Second

// Accounts resolves names, so that tests need no accounts of the machine.
type Accounts struct {
	UID func(name string) (uint32, error)
	GID func(name string) (uint32, error)
}

// SystemAccounts asks the node's name service (nsswitch.conf).
func SystemAccounts() Accounts {
	return Accounts{
		UID: func(name string) (uint32, error) {
			u, err := user.Lookup(name)
			if err != nil {
				return 0, err
			}
			return number(u.Uid)
		},
		GID: func(name string) (uint32, error) {
			g, err := user.LookupGroup(name)
			if err != nil {
				return 0, err
			}
			return number(g.Gid)
		},
	}
}

func number(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}

// resolve turns names and numbers into ids, sorted. A name that nobody knows
// matches nobody and is listed.
func resolve(names []string, lookup func(string) (uint32, error)) (ids []uint32, unknown []string) {
	for _, name := range names {
		id, err := lookup(name)
		if err != nil {
			id, err = number(name)
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

// Unknown lists the users and groups of all jails that do not exist.
func (c *Config) Unknown(accounts Accounts) []string {
	var list []string
	for _, name := range c.JailNames() {
		j := c.Jails[name]
		_, users := resolve(j.Users, accounts.UID)
		_, groups := resolve(j.Groups, accounts.GID)
		for _, u := range users {
			list = append(list, fmt.Sprintf("user %s of jail %s", u, name))
		}
		for _, g := range groups {
			list = append(list, fmt.Sprintf("group %s of jail %s", g, name))
		}
	}
	return list
}

// Site is the text of the site file, in the format of include/gojail.h; keys
// gives each jail's key (see Key), and filters its seccomp program's file.
func (c *Config) Site(accounts Accounts, keys, filters map[string]string, now time.Time) (string, error) {
	c.withCDI()
	until := int64(0)
	if len(c.Unknown(accounts)) > 0 || c.lacksCDI() {
		until = now.Add(unknownRetry).Unix()
	}
	none := map[bool]string{true: "allow", false: "refuse"}[c.AllowNone]
	network := "-"
	if c.Networks.Identity != nil {
		network = c.Networks.Identity.String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "gojail-site %d\n", ContractVersion)
	fmt.Fprintf(&b, "config %s\nnetwork %s\n", c.Identity, network)
	fmt.Fprintf(&b, "until %d\ndefault %s\nnone %s\n", until, c.Default, none)
	fmt.Fprintf(&b, "deadline %d\nscratch %s\n", c.Deadline.Milliseconds(), c.Scratch)
	for _, name := range c.JailNames() {
		c.siteJail(&b, c.Jails[name], accounts, keys[name], filters[name])
	}
	b.WriteString("end\n")
	if b.Len() > siteMax {
		return "", fmt.Errorf("%s: compiles to more than %d bytes; use groups instead of long lists of users", c.Path, siteMax)
	}
	return b.String(), nil
}

func (c *Config) siteJail(b *strings.Builder, j *Jail, accounts Accounts, key, filter string) {
	fmt.Fprintf(b, "jail %s\nkey %s\n", j.Name, key)
	munge := "-"
	if j.Slurm && c.bringsMunge() {
		munge = c.Slurm.Munge
	}
	fmt.Fprintf(b, "tmp %s %d\nshm %d\nspool %s\nmunge %s\nnet %s\n", j.Tmp, j.TmpSize, j.ShmSize, c.Slurm.Spool, munge, c.network(j))
	if filter == "" {
		filter = "-"
	}
	roots := strings.Join(j.Isolation.JailRoot, " ")
	if roots == "" {
		roots = "-"
	}
	for _, v := range c.Environment(j) {
		fmt.Fprintf(b, "%s %s=%s\n", map[bool]string{true: "prepend", false: "env"}[v.Prepend], v.Name, v.Value)
	}
	for index, files := range j.perJob(c.GPUs) {
		for _, file := range files {
			fmt.Fprintf(b, "gpu %d %s\n", index, file)
		}
	}
	fmt.Fprintf(b, "isolate %s\nbounding %x\nroot %s\nseccomp %s\n", j.Isolation.words(), j.Isolation.Bounding(), roots, filter)
	if j.Everybody() {
		b.WriteString("access all\n")
		return
	}
	b.WriteString("access listed\n")
	uids, _ := resolve(j.Users, accounts.UID)
	gids, _ := resolve(j.Groups, accounts.GID)
	for _, id := range uids {
		fmt.Fprintf(b, "uid %d\n", id)
	}
	for _, id := range gids {
		fmt.Fprintf(b, "gid %d\n", id)
	}
}

// network is the label of a step that names none.
func (c *Config) network(j *Jail) string {
	switch {
	case j.Network != "":
		return j.Network
	case c.Networks.Default != "":
		return c.Networks.Default
	}
	return None
}

// WriteSite compiles c into STATE/site. One process does so at a time; one that
// cannot get the lock by the deadline gives up.
func WriteSite(c *Config, stateDir string, deadline time.Time) error {
	keys := map[string]string{}
	for name, j := range c.Jails {
		keys[name] = c.Key(j)
	}
	unlock, err := lockFile(filepath.Join(stateDir, "site.lock"), deadline)
	if err != nil {
		return err
	}
	defer unlock()
	filters, err := writeFilters(c, stateDir)
	if err != nil {
		return err
	}
	text, err := c.Site(SystemAccounts(), keys, filters, time.Now())
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(stateDir, "site"), text)
}

// replaceFile makes path hold text, wholly or not at all, readable by root only.
// The caller holds a lock.
func replaceFile(path, text string) error {
	if err := wholefile.Write(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("cannot write %s: %w; is the state directory full or read-only?", path, cause(err))
	}
	return nil
}

// lockFile takes an flock, which the kernel gives back if this process dies.
func lockFile(path string, deadline time.Time) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w; is the state directory there and writable?", path, cause(err))
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR || time.Now().After(deadline) {
			f.Close()
			return nil, lockError(path, err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func lockError(path string, err error) error {
	switch err {
	case unix.EWOULDBLOCK, unix.EINTR:
		return fmt.Errorf("cannot lock %s: another process has been at it until the deadline", path)
	case unix.ENOSYS, unix.EOPNOTSUPP, unix.ENOLCK:
		return fmt.Errorf("cannot lock %s: %w; have the directory on the node itself, in /run say, or mount Lustre with -o flock", path, err)
	}
	return fmt.Errorf("cannot lock %s: %w", path, cause(err))
}

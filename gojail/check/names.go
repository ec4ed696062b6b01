// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/gojail/subids"
	"github.com/gojail/gojail/internal/rootpath"
)

// namesTimeout is the limit for the question which accounts the name service lists.
const namesTimeout = 5 * time.Second

// nameServices are the services of nsswitch.conf(5) that get accounts from a daemon, and the directories of its socket.
var nameServices = map[string][]string{
	"sss":     {"/var/lib/sss/pipes"},
	"ldap":    {"/run/nslcd", "/var/run/nslcd"},
	"winbind": {"/run/samba/winbindd", "/var/run/samba/winbindd", "/var/lib/samba/winbindd_privileged"},
}

// checkNames warns if users of the node are numbers in a jail: only the node's name service knows them, and neither
// the jail's passwd(5), which is the node's or its own, nor a name service of the jail's does.
func (c *checker) checkNames(j *config.Jail, root int, mounts []specs.Mount) {
	if c.watch || c.node.Accounts == nil {
		return
	}
	user := c.serviceUser()
	if user.text == "" || hasUser(j, root, user.id) {
		return
	}
	gap := c.findServiceGap(root, mounts)
	if gap == "" {
		return
	}
	c.warn("jail "+j.Name, "mount a file with them on /etc/passwd, or give the jail the name service: see users of a "+
		"name service in docs/install.md",
		"%s not in /etc/passwd of this node, but known to its name service: "+
			"in the jail there are numbers for names, and programs that look up their user fail; %s", user.text, gap)
}

// serviceUser is a user that this node knows and its passwd(5) does not have.
type serviceUser struct {
	text string // as in "carol (70001) is", "" if there is none
	id   string // "" if it is unknown who the users are
}

// findServiceUser returns a user that this node knows and its passwd(5) does not have. A name service
// may list nobody: then users that have processes here are asked for, and a daemon that could tell of more is named.
func (c *checker) findServiceUser() (found serviceUser) {
	known := map[uint32]bool{}
	for _, line := range node.ConfLines(c.node.passwd()) {
		if name, id := parseAccount(line); name != "" {
			known[id] = true
		}
	}
	isUnknown := func(id uint32) bool { return id >= firstUserID && id != 65534 && !known[id] }
	source := subids.Host
	if c.node.subIDs != nil {
		source = *c.node.subIDs
	}
	ctx, cancel := context.WithTimeout(context.Background(), namesTimeout)
	defer cancel()
	_ = source.List(ctx, "passwd", func(line string) { // without an answer there is nobody to name
		if name, id := parseAccount(line); name != "" && found.text == "" && isUnknown(id) {
			found = newServiceUser(name, id)
		}
	})
	if found.text != "" {
		return found
	}
	owners, _, _ := subids.ReadProcesses(c.node.proc())
	for _, o := range owners {
		if !isUnknown(o.ID) {
			continue
		}
		if name, err := source.LookUp(ctx, "passwd", o.ID); err == nil && name != "" {
			return newServiceUser(name, o.ID)
		}
		known[o.ID] = true
	}
	for _, service := range parseNameServices(c.readNodeFile("/etc/nsswitch.conf")) {
		if slices.ContainsFunc(nameServices[service],
			func(dir string) bool { return rootpath.Exists(c.node.path(dir)) }) {
			return serviceUser{text: "users of " + service + " (nsswitch.conf) are"}
		}
	}
	return serviceUser{}
}

func newServiceUser(name string, id uint32) serviceUser {
	return serviceUser{fmt.Sprintf("%s (%d) is", name, id), strconv.FormatUint(uint64(id), 10)}
}

// hasUser reports whether the passwd(5) of a jail has a user: a file that is mounted there, or the jail's own. With an
// unknown id, a file that is mounted has all users.
func hasUser(j *config.Jail, root int, id string) bool {
	const path = "/etc/passwd"
	for _, m := range j.Mounts {
		if m.Destination == path {
			return id == "" || slices.ContainsFunc(node.ConfLines(m.Source),
				func(line string) bool { return isOfID(line, id) })
		}
	}
	return id != "" && !slices.Contains(j.Host, path) &&
		slices.ContainsFunc(strings.Split(node.ReadTextIn(root, path, passwdMax), "\n"),
			func(line string) bool { return isOfID(line, id) })
}

// isOfID reports whether a line of passwd(5) is of a user with that number.
func isOfID(line, id string) bool {
	fields := strings.Split(line, ":")
	return len(fields) > 2 && fields[2] == id
}

// parseAccount returns name and number of a line of passwd(5), "" for another line.
func parseAccount(line string) (name string, id uint32) {
	fields := strings.Split(line, ":")
	if len(fields) < 7 {
		return "", 0
	}
	id, err := config.ParseID(fields[2])
	if err != nil {
		return "", 0
	}
	return fields[0], id
}

// parseNameServices returns the services of the line "passwd:" of a nsswitch.conf(5) that get accounts from a daemon.
func parseNameServices(text string) []string {
	var services []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		database, list, _ := strings.Cut(line, ":")
		if strings.TrimSpace(database) != "passwd" {
			continue
		}
		for _, word := range strings.Fields(list) {
			if nameServices[word] != nil {
				services = append(services, word)
			}
		}
	}
	return services
}

// libraryDirs are the directories in which the C libraries of distributions look for modules of the name service.
var libraryDirs = []string{"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/lib/x86_64-linux-gnu",
	"/usr/lib/x86_64-linux-gnu",
	"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu"}

// findServiceGap returns what keeps a jail from asking a daemon for accounts, "" if nothing does: its nsswitch.conf(5)
// must name a service, whose module must be there, and a mount must bring the directory of the daemon's socket. A mount
// of the socket alone is none: a daemon that starts again makes another one.
func (c *checker) findServiceGap(root int, mounts []specs.Mount) (gap string) {
	isMounted := func(path string) bool { return plan.Inside(mounts, path) }
	isBound := func(dir string) bool { return isBound(mounts, dir) }
	const path = "/etc/nsswitch.conf"
	text := c.readNodeFile(path)
	if !isMounted(path) {
		text = node.ReadTextIn(root, path, passwdMax)
	}
	gap = "its nsswitch.conf names no such service"
	for i, service := range parseNameServices(text) {
		module := "libnss_" + service + ".so.2"
		var lacks []string
		if !slices.ContainsFunc(libraryDirs,
			func(dir string) bool { return !isMissingIn(root, filepath.Join(dir, module), isMounted) }) {
			lacks = append(lacks, module)
		}
		if !slices.ContainsFunc(nameServices[service], isBound) {
			lacks = append(lacks, "a mount of "+nameServices[service][0])
		}
		if len(lacks) == 0 {
			return ""
		}
		if i == 0 {
			gap = "its nsswitch.conf names " + service + ", and it lacks " + strings.Join(lacks, " and ")
		}
	}
	return gap
}

// isBound reports whether a directory of a jail is one of the node's: a jail's own /run and /tmp are none.
func isBound(mounts []specs.Mount, dir string) bool {
	bound := false
	for _, m := range mounts {
		if config.Under(dir, m.Destination) {
			bound = slices.Contains(m.Options, "bind") || slices.Contains(m.Options, "rbind")
		}
	}
	return bound
}

// readNodeFile returns the text of a file of the node, "" if there is none.
func (c *checker) readNodeFile(path string) string {
	text, _ := os.ReadFile(c.node.path(path))
	return string(text)
}

// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
)

// schedulers are programs by which users have commands executed later on the node. Their daemons start those by PAM
// stacks of their own, with /bin/sh, whatever the login shell is.
var schedulers = []struct {
	program, allow string   // whom the file names may use the program (crontab(1), at.allow(5))
	spools         []string // of Debian, Red Hat and SUSE: a file of a user's is what that user has scheduled
}{
	{"/usr/bin/crontab", "/etc/cron.allow", []string{"/var/spool/cron/crontabs", "/var/spool/cron",
		"/var/spool/cron/tabs"}},
	{"/usr/bin/at", "/etc/at.allow", []string{"/var/spool/cron/atjobs", "/var/spool/at", "/var/spool/atjobs"}},
}

// checkSchedulers reports users who may have cron or at execute files of their home directories, which they write in
// the jail, on the node. It is a warning: members of an exempt group may do so.
func (c *checker) checkSchedulers() {
	for _, s := range schedulers {
		if !rootpath.Exists(c.node.path(s.program)) {
			continue
		}
		name := filepath.Base(s.program)
		if may := c.describeAllowed(s.allow); may != "" {
			c.warn("sessions",
				fmt.Sprintf("let only root, and whom [session] exempts, use %s: list them in %s, which may be empty",
					name, s.allow),
				"%s may use %s, which executes their commands on the node, outside the jail", may, name)
		}
		if files := c.findScheduled(s.spools); len(files) > 0 {
			c.warn("sessions", "unless these users are exempt, remove the files",
				"%s executes what users have scheduled on the node, outside the jail: %s", name,
				summarize(files, "files"))
		}
	}
}

// describeAllowed returns who beside root may use a program that has that list of users; "" if nobody may.
func (c *checker) describeAllowed(path string) string {
	if !rootpath.Exists(c.node.path(path)) {
		return "all users"
	}
	users := slices.DeleteFunc(node.ConfLines(c.node.path(path)), func(name string) bool { return name == "root" })
	if len(users) == 0 {
		return ""
	}
	return summarize(users, "users")
}

// findScheduled returns the files in those directories that belong to people.
func (c *checker) findScheduled(dirs []string) (files []string) {
	for _, dir := range dirs {
		entries, _ := os.ReadDir(c.node.path(dir))
		for _, entry := range entries {
			var st unix.Stat_t
			path := filepath.Join(dir, entry.Name())
			if unix.Lstat(c.node.path(path), &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Uid >= firstUID {
				files = append(files, path)
			}
		}
	}
	return files
}

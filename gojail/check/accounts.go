// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
)

// checkHomes reports home directories that a jail lacks, in which users' jobs start. It inspects the jail
// only: on the node they may lie on storage that hangs.
func (c *checker) checkHomes(j *config.Jail, root int, isMounted func(path string) bool) {
	missing := map[string][]string{} // by the directory above
	for _, home := range c.findUserHomes() {
		if isMounted(home) {
			continue
		}
		if _, err := node.StatIn(root, home); err == unix.ENOENT {
			missing[filepath.Dir(home)] = append(missing[filepath.Dir(home)], home)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(missing)) {
		homes := missing[dir]
		if dir == "/" {
			dir = homes[0]
		}
		c.warn("jail "+j.Name, fmt.Sprintf(`mount it: [[jail.%s.mounts]] destination = %q, source = %[2]q, options = `+
			`["rbind", "nosuid", "nodev"]; then: gojail init %[1]s`, j.Name, dir),
			"%s has no %s, a user's home directory in the node's passwd, and no mount provides it (%d such below "+
				"%s): a job submitted from there fails", j.Root, homes[0], len(homes), dir)
	}
}

// findUserHomes returns the home directories of the users in the node's passwd(5). It does not use a name
// service, which may hang and have any number of users.
func (c *checker) findUserHomes() []string {
	text, _ := os.ReadFile(c.node.passwd())
	var homes []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) < 7 || len(homes) == homesMax || slices.Contains([]string{"nologin", "false"},
			filepath.Base(fields[6])) {
			continue
		}
		uid, err := config.ParseID(fields[2])
		home := filepath.Clean(fields[5])
		top, _, _ := strings.Cut(strings.TrimPrefix(home, "/"), "/")
		if err != nil || uid < firstUserID || uid > lastUserID || !filepath.IsAbs(home) || isNoHome(top) {
			continue
		}
		homes = append(homes, home)
	}
	slices.Sort(homes)
	return slices.Compact(homes)
}

// isNoHome reports whether no user's home directory lies below that top-level directory.
func isNoHome(top string) bool {
	return top == "" || top == "nonexistent" || slices.Contains(config.SystemDirs, top)
}

// checkSlurmUser reports a SlurmUser that the jail's passwd(5) lacks: Slurm's commands look it up when
// they read slurm.conf, and exit if it is unknown.
func (c *checker) checkSlurmUser(j *config.Jail, root int) {
	name := node.ReadSlurmConf(c.config).Values["slurmuser"]
	if name == "" {
		name = "root" // slurm.conf(5)
	}
	known, err := hasAccount(root, name)
	if err != nil {
		c.warn("jail "+j.Name, "make the file readable", "%s/etc/passwd cannot be read: %v", j.Root, err)
		return
	}
	if known {
		return
	}
	line := name + ":x:UID:GID::/nonexistent:/usr/sbin/nologin with the numbers of the node"
	if u := c.findAccount(name); u != nil {
		line = fmt.Sprintf("%s:x:%s:%s::/nonexistent:/usr/sbin/nologin", u.Username, u.Uid, u.Gid)
	}
	c.warn("jail "+j.Name, "append this line to the file: "+line,
		`SlurmUser %s of slurm.conf is not in %s/etc/passwd: srun inside the jail fails with "Invalid user for `+
			`SlurmUser"`, name, j.Root)
}

// findAccount returns a user of the node by name or number, or nil if the user is unknown or the name
// service must not be used.
func (c *checker) findAccount(name string) *user.User {
	if c.node.Accounts == nil {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		u, _ = user.LookupId(name)
	}
	return u
}

// hasAccount reports whether the jail's passwd(5) has a user with that name or number.
func hasAccount(root int, name string) (bool, error) {
	f, err := rootpath.OpenFileInRoot(root, "/etc/passwd")
	if err == unix.ENOENT {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, passwdMax))
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) >= 3 && (fields[0] == name || fields[2] == name) {
			return true, nil
		}
	}
	return false, lines.Err()
}

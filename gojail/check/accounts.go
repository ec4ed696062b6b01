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
)

// checkHomes looks in a jail for the directories where users' jobs start. It does not look at them on
// the node, where they may lie on storage that hangs.
func (k *checker) checkHomes(j *config.Jail, root int, brought func(path string) bool) {
	missing := map[string][]string{} // by the directory above
	for _, home := range k.findUserHomes() {
		if brought(home) {
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
		k.warn("jail "+j.Name, fmt.Sprintf(`bring them: [[jail.%s.mounts]] destination = %q, source = %[2]q, options = ["rbind", "nosuid", "nodev"]; then: gojail init %[1]s`, j.Name, dir),
			"%s has no %s, a user's home directory by the node's passwd, and no mount brings it (%d such below %s): a job that is submitted there fails", j.Root, homes[0], len(homes), dir)
	}
}

// findUserHomes returns the home directories of the users in the node's passwd(5). A name service is not
// asked: it may hang, and may have any number.
func (k *checker) findUserHomes() []string {
	text, _ := os.ReadFile(k.node.passwd())
	var homes []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) < 7 || len(homes) == homesMax || slices.Contains([]string{"nologin", "false"}, filepath.Base(fields[6])) {
			continue
		}
		uid, err := config.ParseID(fields[2])
		home := filepath.Clean(fields[5])
		top, _, _ := strings.Cut(strings.TrimPrefix(home, "/"), "/")
		if err != nil || uid < firstUserID || uid > lastUserID || !filepath.IsAbs(home) || slices.Contains(append(config.SystemDirs, "", "nonexistent"), top) {
			continue
		}
		homes = append(homes, home)
	}
	slices.Sort(homes)
	return slices.Compact(homes)
}

// checkSlurmUser: Slurm's commands look SlurmUser up as they read slurm.conf, and end
// where it is unknown.
func (k *checker) checkSlurmUser(j *config.Jail, root int) {
	name := node.ReadSlurmConf(k.config).Values["slurmuser"]
	if name == "" {
		name = "root" // slurm.conf(5)
	}
	known, err := hasAccount(root, name)
	if err != nil {
		k.warn("jail "+j.Name, "see to the file", "%s/etc/passwd cannot be read: %v", j.Root, err)
		return
	}
	if known {
		return
	}
	line := name + ":x:UID:GID::/nonexistent:/usr/sbin/nologin with the numbers of the node"
	if u := k.findAccount(name); u != nil {
		line = fmt.Sprintf("%s:x:%s:%s::/nonexistent:/usr/sbin/nologin", u.Username, u.Uid, u.Gid)
	}
	k.warn("jail "+j.Name, "append this line there: "+line,
		`SlurmUser %s of slurm.conf is not in %s/etc/passwd: srun inside the jail ends with "Invalid user for SlurmUser"`, name, j.Root)
}

// findAccount is a user of the node by name or number; nil: not known, or not to be asked.
func (k *checker) findAccount(name string) *user.User {
	if k.node.Accounts == nil {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		u, _ = user.LookupId(name)
	}
	return u
}

// hasAccount looks in the jail's passwd(5) for a user by name or number.
func hasAccount(root int, name string) (bool, error) {
	f, err := openFileIn(root, "/etc/passwd")
	if err == unix.ENOENT {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, passwdMost))
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) >= 3 && (fields[0] == name || fields[2] == name) {
			return true, nil
		}
	}
	return false, lines.Err()
}

// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// inside looks for what jobs expect of the tree that is the jail's root, where
// no mount brings it.
func (k *checker) inside(j *Jail, view *View) {
	root, err := openJail(j)
	if err != nil {
		return // the storage went away meanwhile; the next check tells
	}
	defer unix.Close(root)
	brought := func(path string) bool { return inside(view.Spec.Mounts, path) }
	if _, err := statIn(root, "/bin/sh"); err == unix.ENOENT && !brought("/bin/sh") && !brought("/usr/bin/sh") {
		k.warn("jail "+j.Name, "install a shell, or correct root = if this is not the tree that was meant",
			"%s has no /bin/sh: most batch scripts and many programs need it", j.Root)
	}
	if j.Slurm && !brought("/etc/passwd") {
		k.slurmUser(j, root)
	}
	k.spoolBase(j, root)
}

// slurmUser: Slurm's commands look SlurmUser up as they read slurm.conf, and end
// where it is unknown.
func (k *checker) slurmUser(j *Jail, root int) {
	name := readSlurmConf(k.config).values["slurmuser"]
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
	if u := k.account(name); u != nil {
		line = fmt.Sprintf("%s:x:%s:%s::/nonexistent:/usr/sbin/nologin", u.Username, u.Uid, u.Gid)
	}
	k.warn("jail "+j.Name, "append this line there: "+line,
		`SlurmUser %s of slurm.conf is not in %s/etc/passwd: srun inside the jail ends with "Invalid user for SlurmUser"`, name, j.Root)
}

// account is a user of the node by name or number; nil: not known, or not to be asked.
func (k *checker) account(name string) *user.User {
	if k.node.Accounts == nil {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		u, _ = user.LookupId(name)
	}
	return u
}

// passwdMost is more than any passwd(5) has, and little enough to be read at once: the
// file may be a user's.
const passwdMost = 16 << 20

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

// openFileIn opens a regular file of a jail for reading. It is opened as a place
// first: what a device or a pipe does when it is opened must not happen.
func openFileIn(root int, path string) (*os.File, error) {
	fd, err := openBeneath(root, path, inJail)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("it is not a regular file")
	}
	f, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return nil, cause(err)
	}
	return f, nil
}

// spoolBase tells where the tmpfs for the nodes' spool directories covers
// something. Empty directories were mount targets once.
func (k *checker) spoolBase(j *Jail, root int) {
	base := k.config.Slurm.SpoolBase
	if base == k.config.Slurm.Spool {
		return
	}
	place, err := openBeneath(root, base, inJail)
	if err != nil {
		return
	}
	defer unix.Close(place)
	dir, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", place))
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(256) // of a user's directory there may be any number
	slices.Sort(names)
	for _, name := range names {
		if !emptyDirectory(place, name) {
			k.warn("jail "+j.Name, "give SlurmdSpoolDir a directory of its own, such as /var/spool/slurmd/%n",
				"%s of the jail, which has %s, is covered: %%n makes it the place of the nodes' spool directories", base, name)
			return
		}
	}
}

func emptyDirectory(dir int, name string) bool {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	names, _ := f.Readdirnames(1)
	return len(names) == 0
}

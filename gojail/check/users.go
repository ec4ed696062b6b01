// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
)

// asUser calls try with the file access of a user who owns nothing and is in no group: root may open what no job's user can. The kernel, and
// the server of the storage, decide. It takes the rights of one thread, which ends with the call (setfsuid(2), credentials(7)).
func asUser(try func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // without UnlockOSThread: the thread ends with this goroutine
		_, _, failed := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
		unix.SetfsgidRetGid(lastUserID)
		unix.SetfsuidRetUid(lastUserID)
		if now, _ := unix.SetfsuidRetUid(-1); failed != 0 || now != lastUserID {
			done <- nil // whoever is not root tries as the one who called
			return
		}
		done <- try()
	}()
	return <-done
}

// findClosed returns the paths in a root whose modes are why a user may not execute the last of them. Storage may refuse for another reason,
// such as a user without a ticket (sec=krb5, nfs(5)), which says nothing about users who have one: then there are none.
func findClosed(root int, paths ...string) (closed []string) {
	err := asUser(func() error {
		fd, err := rootpath.OpenBeneath(root, paths[len(paths)-1], rootpath.InRoot)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Faccessat2(fd, "", unix.X_OK, unix.AT_EMPTY_PATH|unix.AT_EACCESS)
	})
	for _, path := range paths {
		if st, missing := node.StatIn(root, path); errors.Is(err, unix.EACCES) && missing == nil && st.Mode&0o001 == 0 {
			closed = append(closed, path)
		}
	}
	return closed
}

// checkForUsers reports what keeps users out of a jail that root can enter. It reports whether they can.
func (c *checker) checkForUsers(j *config.Jail, root int, isMounted func(path string) bool) bool {
	if findClosed(root, "/") != nil {
		c.reportClosedRoot(j, root)
		return false
	}
	if closed := findClosed(root, "/usr", "/usr/bin", "/bin", "/bin/sh"); closed != nil && !isMounted("/bin/sh") && !isMounted("/usr/bin/sh") {
		c.failIn(isContent(j, closed...), "jail "+j.Name, describeOpening(root, j.Root, "cd "+j.Root+" && chmod a+rx ."+strings.Join(closed, " .")),
			"%s: users may not execute /bin/sh of the jail, only root may: every batch script of a user fails", j.Root)
		return false
	}
	for _, m := range j.Mounts {
		if m.Type == "bind" {
			c.checkSourceForUsers(j, m)
		}
	}
	return true
}

// reportClosedRoot reports a jail's root that users may not enter. A jail of some users may have the root of their group.
func (c *checker) reportClosedRoot(j *config.Jail, root int) {
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil {
		return
	}
	subject, remedy := "jail "+j.Name, describeOpening(root, j.Root, "chmod 755 "+j.Root)
	if st.Mode&0o010 != 0 && st.Gid != 0 && !j.IsOpenToAll() {
		c.warn(subject, remedy, "%s has mode %04o: each job of a user who is not in the group %d fails", j.Root, st.Mode&0o7777, st.Gid)
		return
	}
	c.failIn(st.Uid != 0 || c.isRootContent(j), subject, remedy, "%s has mode %04o: users may not enter it, only root may, and each job of a user fails",
		j.Root, st.Mode&0o7777)
}

// describeOpening returns the remedy for what users may not enter: a command, or for an image another image.
func describeOpening(root int, path, command string) string {
	if node.IsImage(root) {
		return "make the image " + path + " again, from a tree that users may enter (chmod 755)"
	}
	return "run: " + command
}

// checkSourceForUsers warns about a directory of the node that a jail shows and that no user may enter.
func (c *checker) checkSourceForUsers(j *config.Jail, m config.Mount) {
	fd, err := unix.Open(m.Source, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // a file, or checkSources reports it
	}
	defer unix.Close(fd)
	if findClosed(fd, "/") != nil {
		c.warn("jail "+j.Name, "run: chmod a+x "+m.Source, "%s (for %s): its mode keeps users out who neither own it nor are in its group", m.Source, m.Destination)
	}
}

// checkPluginForUsers reports a file without which a user's srun and sbatch do not start: they read plugstack.conf, and load what it names, with
// the user's rights.
func (c *checker) checkPluginForUsers(conf node.SlurmConf, plugin string) {
	closed := slices.DeleteFunc(append(slices.Clone(conf.Files), plugin), func(path string) bool {
		return !errors.Is(asUser(func() error { return mayRead(path) }), unix.EACCES)
	})
	if len(closed) > 0 {
		c.warn("plugstack", fmt.Sprintf("run: chmod a+r %s; and let users search the directories above (chmod a+x)", strings.Join(closed, " ")),
			"users may not read %s: their srun and sbatch do not start on a host where that is so", strings.Join(closed, ", "))
	}
}

// mayRead fails if the calling thread may not open the file.
func mayRead(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
)

// asUser calls try with the file access of a user who owns nothing and is in no group: root may open what no job's user
// can. The kernel, and the server of the storage, decide. It takes the rights of one thread, which ends with the call
// (setfsuid(2), credentials(7)).
func asUser(try func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()              // without UnlockOSThread: the thread ends with this goroutine
		if unix.Gettid() == unix.Getpid() { // other rights remove its signal at the end of the parent, too (prctl(2))
			defer runtime.UnlockOSThread()
			done <- asUser(try) // on another thread, since this one is locked
			return
		}
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

// findClosed returns the paths in a root whose modes are why a user may not execute the last of them, and whether one
// of them admits nobody but root. Storage may refuse for another reason, such as a user without a ticket (sec=krb5,
// nfs(5)), which says nothing about users who have one: then there are none.
func findClosed(root int, paths ...string) (closed []string, toAll bool) {
	err := asUser(func() error {
		fd, err := rootpath.OpenBeneath(root, paths[len(paths)-1], rootpath.InRoot)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Faccessat2(fd, "", unix.X_OK, unix.AT_EMPTY_PATH|unix.AT_EACCESS)
	})
	if !errors.Is(err, unix.EACCES) {
		return nil, false
	}
	for _, path := range paths {
		fd, err := rootpath.OpenBeneath(root, path, rootpath.InRoot)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&0o001 == 0 {
			closed, toAll = append(closed, path), toAll || !admitsSome(fd, &st)
		}
		unix.Close(fd)
	}
	return closed, toAll
}

// checkForUsers reports what keeps users out of a jail that root can enter. It reports whether they can.
func (c *checker) checkForUsers(j *config.Jail, root int, isMounted func(path string) bool) bool {
	if closed, toAll := findClosed(root, "/"); closed != nil {
		c.reportClosedRoot(j, root, toAll)
		return false
	}
	closed, toAll := findClosed(root, "/usr", "/usr/bin", "/bin", "/bin/sh")
	if closed != nil && !isMounted("/bin/sh") && !isMounted("/usr/bin/sh") {
		c.reportClosedShell(j, root, closed, toAll)
		return false
	}
	for _, m := range j.Mounts {
		if m.Type == "bind" {
			c.checkSourceForUsers(j, m)
		}
	}
	return true
}

// forAll begins the remedy for what a group or an ACL may keep from others on purpose.
const forAll = "if all users are to use the jail, "

// reportClosedRoot reports a jail's root that users may not enter. The root may admit all users of the jail, unless
// toAll.
func (c *checker) reportClosedRoot(j *config.Jail, root int, toAll bool) {
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil {
		return
	}
	subject, remedy := "jail "+j.Name, describeOpening(root, j.Root, "chmod 755 "+j.Root)
	if !toAll {
		c.warn(subject, forAll+remedy,
			"%s has mode %04o: each job of a user whom neither the group %d nor an ACL admits fails",
			j.Root, st.Mode&0o7777, st.Gid)
		return
	}
	c.failIn(st.Uid != 0 || c.isRootContent(j) || isContent(j, "/"), subject, remedy,
		"%s has mode %04o: users may not enter it, only root may, and each job of a user fails",
		j.Root, st.Mode&0o7777)
}

// reportClosedShell reports a shell that users may not execute, and what on the way to it is closed.
func (c *checker) reportClosedShell(j *config.Jail, root int, closed []string, toAll bool) {
	subject, remedy := "jail "+j.Name, describeOpening(root, j.Root, "chmod a+rx "+resolveInRoot(root, closed))
	if !toAll {
		c.warn(subject, forAll+remedy,
			"%s: only some users may execute /bin/sh of the jail (%s): every batch script of another user fails",
			j.Root, strings.Join(closed, ", "))
		return
	}
	c.failIn(isContent(j, closed...), subject, remedy,
		"%s: users may not execute /bin/sh of the jail, only root may: every batch script of a user fails", j.Root)
}

// resolveInRoot returns the paths of the node that paths of a root lead to, as words of a shell. A link in the root,
// which may be a user's, leads elsewhere outside of it: chmod of ROOT/bin/sh would change a file of the node.
func resolveInRoot(root int, paths []string) string {
	var words []string
	for _, path := range paths {
		fd, err := rootpath.OpenBeneath(root, path, rootpath.InRoot)
		if err != nil {
			continue
		}
		to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		unix.Close(fd)
		if word := oneline.ShellWord(to); err == nil && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
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
	if _, toAll := findClosed(fd, "/"); toAll { // otherwise it is for a group, or for those whom an ACL names
		c.warn("jail "+j.Name, "if all users of the jail are to see what is in it: chmod a+x "+m.Source,
			"%s (for %s): its mode keeps users out who neither own it nor are in its group", m.Source, m.Destination)
	}
}

// checkPluginForUsers reports a file without which a user's srun and sbatch do not start: they read plugstack.conf, and
// load what it names, with the user's rights.
func (c *checker) checkPluginForUsers(conf node.SlurmConf, plugin string) {
	closed := slices.DeleteFunc(append(slices.Clone(conf.Files), plugin), func(path string) bool {
		return !errors.Is(asUser(func() error { return mayRead(path) }), unix.EACCES)
	})
	if len(closed) > 0 {
		c.warn("plugstack", fmt.Sprintf("run: chmod a+r %s; and let users search the directories above (chmod a+x)",
			strings.Join(closed, " ")),
			"users may not read %s: their srun and sbatch do not start on a host where that is so",
			strings.Join(closed, ", "))
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

// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
)

// checkForUsers reports what keeps users out of a jail that root can enter. It reports whether they can.
func (c *checker) checkForUsers(j *config.Jail, root int, isMounted func(path string) bool) bool {
	if list := findClosed(root, "/", unix.X_OK); list != nil {
		c.reportClosedRoot(j, root, admitNobody(list))
		return false
	}
	if !c.checkShellForUsers(j, root, isMounted) {
		return false
	}
	for _, one := range filesOfUsers {
		list := findClosed(root, one.path, unix.R_OK)
		if list != nil && !isMounted(one.path) {
			c.warn("jail "+j.Name, describeOpening(root, j.Root, describeModes(list, "rX")),
				"%s: users may not read %s of the jail: %s", j.Root, one.path, one.without)
		}
	}
	c.checkHomesForUsers(j, root, isMounted)
	for _, m := range j.Mounts {
		if m.Type == "bind" {
			c.checkSourceForUsers(j, m.Source, m.Destination)
		}
	}
	for _, path := range j.Host {
		c.checkSourceForUsers(j, path, path)
	}
	return true
}

// filesOfUsers are files of a jail that programs of users read, and what is so without them.
var filesOfUsers = []struct{ path, without string }{
	{"/etc/passwd", "they have numbers for names there, and programs that look up their user fail"},
	{"/etc/group", "their groups have numbers for names there"},
	{"/etc/nsswitch.conf", "programs look up names in files only"},
	{"/etc/ld.so.cache", "programs may not find their libraries"},
}

// checkShellForUsers reports a shell that users may not execute, its dynamic linker and C library included. It reports
// whether they may.
func (c *checker) checkShellForUsers(j *config.Jail, root int, isMounted func(path string) bool) bool {
	const shell = "/bin/sh"
	if leadsToMount(root, shell, isMounted) {
		return true
	}
	type need struct {
		path, name string
		rights     uint32
	}
	needs := []need{{shell, shell, unix.X_OK}}
	if f, err := rootpath.OpenFileInRoot(root, shell); err == nil {
		if linker := readInterpreter(f); linker != "" && !leadsToMount(root, linker, isMounted) {
			needs = append(needs, need{linker, "the dynamic linker", unix.X_OK})
			if library := findClosedLibrary(root, readMachine(f), isMounted); library != "" {
				needs = append(needs, need{library, "the C library", unix.R_OK})
			}
		}
		f.Close()
	}
	for _, one := range needs {
		if list := findClosed(root, one.path, one.rights); list != nil {
			c.reportClosedShell(j, root, one.name, list)
			return false
		}
	}
	return true
}

// findClosedLibrary returns the path of a C library for programs of that machine, if users may read none of these; ""
// if they may, or there is none. The dynamic linker passes over a library that it may not open, and over one for
// another machine (ld.so(8)).
func findClosedLibrary(root int, machine string, isMounted func(path string) bool) (closed string) {
	for _, dir := range libraryDirs {
		path := filepath.Join(dir, "libc.so.6")
		if leadsToMount(root, path, isMounted) {
			return ""
		}
		f, err := rootpath.OpenFileInRoot(root, path)
		if err != nil {
			continue
		}
		same := readMachine(f) == machine
		f.Close()
		if list := findClosed(root, path, unix.R_OK); same && list == nil {
			return ""
		}
		if same && closed == "" {
			closed = path
		}
	}
	return closed
}

// checkHomesForUsers reports home directories in the jail that their users may not enter.
func (c *checker) checkHomesForUsers(j *config.Jail, root int, isMounted func(path string) bool) {
	for _, home := range c.findUserHomes() {
		dir := filepath.Dir(home)
		if list := findClosed(root, dir, unix.X_OK); list != nil && !isMounted(home) && !isMounted(dir) {
			c.warn("jail "+j.Name, describeOpening(root, j.Root, describeModes(list, "x")),
				"%s: users may not enter %s of the jail: their jobs start in /tmp, and do not find their files", j.Root,
				dir)
			return
		}
	}
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
	subject, remedy := "jail "+j.Name, describeOpening(root, j.Root, "chmod 755 "+oneline.ShellWord(j.Root))
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

// reportClosedShell reports a shell, or what it needs, that users may not execute, and what on the way to it is closed.
func (c *checker) reportClosedShell(j *config.Jail, root int, name string, list []closed) {
	subject, remedy := "jail "+j.Name, describeOpening(root, j.Root, describeModes(list, "rx"))
	if !admitNobody(list) {
		c.warn(subject, forAll+remedy,
			"%s: only some users may execute %s of the jail (%s): every batch script of another user fails",
			j.Root, name, joinNames(list))
		return
	}
	var names []string
	for _, one := range list {
		names = append(names, one.name)
	}
	c.failIn(isContent(j, names...), subject, remedy,
		"%s: users may not execute %s of the jail, only root may: every batch script of a user fails", j.Root, name)
}

// describeOpening returns the remedy for what users may not enter: a command, or for an image another image.
func describeOpening(root int, path, command string) string {
	if node.IsImage(root) {
		return "make the image " + path + " again, from a tree that users may enter (chmod 755)"
	}
	return "run: " + command
}

// checkSourceForUsers warns about a directory or file of the node that a jail shows and that no user may enter or read.
func (c *checker) checkSourceForUsers(j *config.Jail, source, destination string) {
	fd, err := unix.Open(source, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) // which triggers an automount
	if err == unix.ENOTDIR {
		fd, err = unix.Open(source, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return // checkSources reports it
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return
	}
	right, name := uint32(unix.X_OK), "x"
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		right, name = unix.R_OK, "r"
	} else if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return
	}
	// The directories above do not matter once the source is mounted.
	if st.Mode&right != 0 || st.Mode&(right<<3) != 0 && st.Gid != 0 || admitsSome(fd, &st) {
		return // it is for all, for a group, or for those whom an ACL names
	}
	c.warn("jail "+j.Name, "if all users of the jail are to see what is in it: chmod a+"+name+" "+
		oneline.ShellWord(source),
		"%s (for %s): its mode keeps users out who neither own it nor are in its group", source, destination)
}

// checkFilesForUsers reports a file without which a user's srun and sbatch do not start: they read slurm.conf and
// plugstack.conf, and load what the latter names, with the user's rights. It reports whether they start.
func (c *checker) checkFilesForUsers(conf node.SlurmConf, plugin string) bool {
	top, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(top)
	files := append([]string{filepath.Join(conf.Dir, "slurm.conf")}, conf.Files...)
	var paths, commands []string
	forWhom := "if all users submit jobs here, "
	for _, path := range append(files, plugin) {
		list := findClosed(top, path, unix.R_OK)
		if list == nil {
			continue
		}
		paths = append(paths, path)
		if admitNobody(list) {
			forWhom = ""
		}
		for _, one := range list {
			right := "rx" // of a directory, whose files an include may list
			if one.name == list[len(list)-1].name && isRegular(one.path) {
				right = "r"
			}
			if command := "chmod a+" + right + " " + oneline.ShellWord(one.path); !slices.Contains(commands, command) {
				commands = append(commands, command)
			}
		}
	}
	if len(paths) > 0 {
		c.warn("plugstack", forWhom+"run: "+strings.Join(commands, " && "),
			"users may not read %s: their srun and sbatch do not start on a host where that is so",
			strings.Join(paths, ", "))
	}
	return len(paths) == 0
}

// isRegular reports whether a path leads to a regular file.
func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

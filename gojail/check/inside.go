// SPDX-License-Identifier: Apache-2.0

package check

import (
	"debug/elf"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
)

// checkInside looks for what jobs expect of the tree that is the jail's root, where
// no mount brings it.
func (k *checker) checkInside(j *config.Jail, view *plan.View) {
	root, err := node.OpenJail(j)
	if err != nil {
		return // the storage went away meanwhile; the next check tells
	}
	defer unix.Close(root)
	brought := func(path string) bool { return plan.Inside(view.Spec.Mounts, path) }
	if lacks := findMissingShell(root, brought); lacks != "" {
		k.warn("jail "+j.Name, "install a shell, or correct root = if this is not the tree that was meant",
			"%s %s: most batch scripts and many programs need it", j.Root, lacks)
	}
	k.checkLinker(j, root, brought)
	k.checkHomes(j, root, brought)
	if j.Slurm && !plan.Inside(plan.JobMounts(k.config, j, "", false), "/etc/passwd") && !brought("/etc/passwd") {
		k.checkSlurmUser(j, root)
	}
	k.checkSpoolBase(j, root)
}

// FindMissingShell returns what is wrong with /bin/sh of a jail, as in "has no /bin/sh", "" if nothing is or
// the root cannot be opened.
func FindMissingShell(j *config.Jail, view *plan.View) string {
	root, err := node.OpenJail(j)
	if err != nil {
		return ""
	}
	defer unix.Close(root)
	return findMissingShell(root, func(path string) bool { return plan.Inside(view.Spec.Mounts, path) })
}

// findMissingShell returns what is wrong with /bin/sh of a jail, "" if nothing is.
func findMissingShell(root int, brought func(path string) bool) string {
	const shell = "/bin/sh"
	if brought(shell) || brought("/usr"+shell) {
		return ""
	}
	f, err := openFileIn(root, shell)
	if err == nil {
		defer f.Close()
		if interpreter := readInterpreter(f); interpreter != "" && isMissingIn(root, interpreter, brought) {
			return "has a " + shell + " whose dynamic linker, " + interpreter + ", is not there"
		}
		return ""
	}
	if err != unix.ENOENT {
		return "has a " + shell + " that cannot be used: " + err.Error()
	}
	if target := readLinkIn(root, shell); target != "" {
		if brought(target) {
			return ""
		}
		return "has a " + shell + " that leads to " + target + ", which is not there"
	}
	return "has no " + shell
}

// readLinkIn returns where a symbolic link of a jail leads to, "" if it is none.
func readLinkIn(root int, path string) string {
	dir, err := rootpath.OpenBeneath(root, filepath.Dir(path), rootpath.InRoot)
	if err != nil {
		return ""
	}
	defer unix.Close(dir)
	to := make([]byte, contract.PathMax)
	n, err := unix.Readlinkat(dir, filepath.Base(path), to)
	if err != nil {
		return ""
	}
	if target := string(to[:n]); filepath.IsAbs(target) {
		return filepath.Clean(target)
	}
	return filepath.Join(filepath.Dir(path), string(to[:n]))
}

// isMissingIn reports whether a jail lacks a file that no mount brings either. Where /lib64 is a link
// to usr/lib64, a mount of /usr brings it.
func isMissingIn(root int, path string, brought func(path string) bool) bool {
	_, err := node.StatIn(root, path)
	return err == unix.ENOENT && !brought(path) && !brought("/usr"+path)
}

// readInterpreter returns the dynamic linker that a program names, "" if it names none.
func readInterpreter(program io.ReaderAt) string {
	f, err := elf.NewFile(program)
	if err != nil {
		return ""
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < contract.PathMax {
			text := make([]byte, p.Filesz)
			if _, err := p.ReadAt(text, 0); err == nil {
				return strings.TrimRight(string(text), "\x00")
			}
		}
	}
	return ""
}

// checkLinker looks in a jail for the dynamic linker of the node's Slurm, whose commands and libraries are
// the node's, and no mount brings a C library.
func (k *checker) checkLinker(j *config.Jail, root int, brought func(path string) bool) {
	commands, _ := node.FindCommands(k.config)
	if !j.Slurm || len(commands) == 0 {
		return
	}
	f, err := os.Open(commands[0])
	if err != nil {
		return
	}
	defer f.Close()
	if interpreter := readInterpreter(f); interpreter != "" && isMissingIn(root, interpreter, brought) {
		k.warn("jail "+j.Name, "install glibc there, or write slurm = false",
			"%s has no %s, the dynamic linker of the node's Slurm: its commands and libraries cannot run in it", j.Root, interpreter)
	}
}

const (
	firstUserID = 1000  // UID_MIN, login.defs(5)
	lastUserID  = 65533 // nobody's is the next
	homesMax    = 1000  // how many homes are looked at
)

// passwdMost is more than any passwd(5) has, and little enough to be read at once: the
// file may be a user's.
const passwdMost = 16 << 20

// openFileIn opens a regular file of a jail for reading. It is opened as a place
// first: what a device or a pipe does when it is opened must not happen.
func openFileIn(root int, path string) (*os.File, error) {
	fd, err := rootpath.OpenBeneath(root, path, rootpath.InRoot)
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
		return nil, oneline.Cause(err)
	}
	return f, nil
}

// checkSpoolBase tells where the tmpfs for the nodes' spool directories covers
// something. Empty directories were mount targets once.
func (k *checker) checkSpoolBase(j *config.Jail, root int) {
	base := k.config.Slurm.SpoolBase
	if base == k.config.Slurm.Spool {
		return
	}
	place, err := rootpath.OpenBeneath(root, base, rootpath.InRoot)
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
		if !isEmptyDirectory(place, name) {
			k.warn("jail "+j.Name, "give SlurmdSpoolDir a directory of its own, such as /var/spool/slurmd/%n",
				"%s of the jail, which has %s, is covered: %%n makes it the place of the nodes' spool directories", base, name)
			return
		}
	}
}

func isEmptyDirectory(dir int, name string) bool {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	names, _ := f.Readdirnames(1)
	return len(names) == 0
}

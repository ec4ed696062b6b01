// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/rootpath"
)

// checkInside reports files that jobs need and neither the jail's root nor a mount provides.
func (c *checker) checkInside(j *config.Jail, view *plan.View, root int) {
	isMounted := func(path string) bool { return plan.Inside(view.Spec.Mounts, path) }
	if lacks := findMissingShell(root, isMounted); lacks != "" {
		c.warn("jail "+j.Name, "install a shell, or correct root = if this is the wrong tree",
			"%s %s: most batch scripts and many programs need it", j.Root, lacks)
	}
	linker := c.findMissingLinker(root, isMounted)
	if j.Slurm && linker != "" {
		c.warn("jail "+j.Name, "install glibc there, or write slurm = false",
			"%s has no %s, the dynamic linker of the node's Slurm: its commands and libraries cannot run in the jail",
			j.Root, linker)
	}
	c.checkTaskPrologsLinker(j, linker)
	c.checkTaskPrograms(j, root, slices.Concat(view.Spec.Mounts, plan.JobMounts(c.config, nil, j, "", false, os.Stat)))
	c.checkHomes(j, root, isMounted)
	c.checkNames(j, root, view.Spec.Mounts)
	if j.Slurm && !plan.Inside(plan.JobMounts(c.config, nil, j, "", false, os.Stat), "/etc/passwd") &&
		!isMounted("/etc/passwd") {
		c.checkSlurmUser(j, root)
	}
	c.checkSpoolBase(j, root)
}

// FindMissingShell returns what is wrong with /bin/sh of a jail, as in "has no /bin/sh", or "" if nothing
// is or the root cannot be opened.
func FindMissingShell(j *config.Jail, view *plan.View) string {
	root, err := node.OpenJail(j)
	if err != nil {
		return ""
	}
	defer unix.Close(root)
	return findMissingShell(root, func(path string) bool { return plan.Inside(view.Spec.Mounts, path) })
}

// findMissingShell returns what is wrong with /bin/sh of a jail, or "" if nothing is.
func findMissingShell(root int, isMounted func(path string) bool) string {
	const shell = "/bin/sh"
	if leadsToMount(root, shell, isMounted) {
		return ""
	}
	f, err := rootpath.OpenFileInRoot(root, shell)
	if err == nil {
		defer f.Close()
		if interpreter := readInterpreter(f); interpreter != "" && isMissingIn(root, interpreter, isMounted) {
			return "has a " + shell + " whose dynamic linker, " + interpreter + ", is missing"
		}
		return ""
	}
	if err != unix.ENOENT {
		return "has a " + shell + " that cannot be opened: " + err.Error()
	}
	if target := rootpath.ReadLink(root, shell); target != "" {
		return "has a " + shell + " that leads to " + target + ", which is missing"
	}
	return "has no " + shell
}

// isMissingIn reports whether neither the jail nor a mount provides a file.
func isMissingIn(root int, path string, isMounted func(path string) bool) bool {
	_, err := node.StatIn(root, path)
	return err == unix.ENOENT && !leadsToMount(root, path, isMounted)
}

// leadsToMount reports whether a mount shows what is at a path: one at or above the path, or one to which a link of the
// root leads. Where /lib64 is a link to usr/lib64, a mount of /usr provides what is in there.
func leadsToMount(root int, path string, isMounted func(string) bool) bool {
	return isMounted(path) || slices.ContainsFunc(listPrefixes(path), func(one string) bool {
		to := rootpath.ReadLink(root, one)
		return to != "" && isMounted(filepath.Join(to, strings.TrimPrefix(path, one)))
	})
}

// findMissingLinker returns the dynamic linker of the node's Slurm if a jail lacks it, or "": Slurm's programs and
// libraries come from the node, but the C library is always the jail's.
func (c *checker) findMissingLinker(root int, isMounted func(path string) bool) string {
	commands, _ := node.FindCommands(c.config)
	if len(commands) == 0 {
		return ""
	}
	f, err := os.Open(commands[0])
	if err != nil {
		return ""
	}
	defer f.Close()
	if interpreter := readInterpreter(f); interpreter != "" && isMissingIn(root, interpreter, isMounted) {
		return interpreter
	}
	return ""
}

// startsTaskPrologByStepd reports whether a release of Slurm starts a TaskProlog through slurmstepd, from inside the
// jail. 24.11.7 and 25.05.2 start it directly again (_run_script_and_set_env in task.c).
func startsTaskPrologByStepd(release slurmVersion) bool {
	return release >= 0x180b00 && release < 0x180b07 || release >= 0x190500 && release < 0x190502
}

// checkTaskPrologsLinker reports a jail in which a TaskProlog of slurm.conf cannot be started because slurmstepd, which
// starts it, has no dynamic linker there.
func (c *checker) checkTaskPrologsLinker(j *config.Jail, missingLinker string) {
	conf := node.ReadSlurmConf(c.config)
	if missingLinker == "" || conf.Values["taskprolog"] == "" {
		return
	}
	_, release := findNodesRelease(slices.Concat(conf.Plugins, node.ReadSlurm(c.config).Dirs))
	if startsTaskPrologByStepd(release) {
		c.fail("jail "+j.Name,
			"install glibc there, remove TaskProlog from slurm.conf, or upgrade Slurm to 24.11.7, 25.05.2 or later",
			"Slurm %s starts the TaskProlog of slurm.conf through slurmstepd, whose dynamic linker, %s, is missing "+
				"in %s: every step fails",
			release, missingLinker, j.Root)
	}
}

const (
	firstUserID = 1000  // UID_MIN, login.defs(5)
	lastUserID  = 65533 // the number after it is nobody's
	homesMax    = 1000  // limit of the homes that are checked
)

// passwdMax is the limit of a passwd(5) that is read at once, since the file may belong to a user. No
// real one is larger.
const passwdMax = 16 << 20

// checkSpoolBase reports a tmpfs for the nodes' spool directories that would hide files of the jail.
// Empty directories are former mount targets.
func (c *checker) checkSpoolBase(j *config.Jail, root int) {
	base := c.config.Slurm.SpoolBase
	if base == c.config.Slurm.Spool {
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
	names, _ := dir.Readdirnames(256) // a user's directory may have any number
	slices.Sort(names)
	for _, name := range names {
		if !isEmptyDirectory(place, name) {
			c.warn("jail "+j.Name, "give SlurmdSpoolDir a directory of its own, such as /var/spool/slurmd/%n",
				"%s of the jail, which has %s, is covered: %%n makes it the place of the nodes' spool directories",
				base, name)
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

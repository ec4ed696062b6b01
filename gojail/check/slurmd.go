// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/procfs"
)

// checkSlurmd reports that no slurmd runs, and one in which no step gets a jail. It is a warning if none runs: a site
// may start slurmd only after this check.
func (c *checker) checkSlurmd(slurmds []int) {
	if len(slurmds) == 0 && !c.watch && !c.config.Login.Here && !c.faults["slurmd"] {
		c.warn("slurmd", "run: systemctl start slurmd",
			"no slurmd runs on this node: no job starts here until one does")
	}
	for _, pid := range slurmds {
		if root, err := os.Readlink(fmt.Sprintf("/proc/%d/root", pid)); err == nil && root != "/" {
			c.fail("slurmd", "start it without chroot(8), in a mount namespace with that root",
				"process %d runs in the chroot %s, where no step gets a jail", pid, root)
		}
		if missing := findMissingOf(pid); len(missing) > 0 {
			c.fail("slurmd", "remove CapabilityBoundingSet= from its unit (systemctl cat slurmd), or give them to its "+
				"container, and run: systemctl restart slurmd",
				"process %d lacks %s: every step in a jail fails", pid, strings.Join(missing, ", "))
		}
	}
}

// findSlurmds returns the pids of this node's slurmd. One host may have several nodes (slurmd -N, slurmd(8)).
func (c *checker) findSlurmds() []int {
	return slices.DeleteFunc(findProcesses("slurmd"), func(pid int) bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		words := strings.Split(string(text), "\x00")
		for i, word := range words {
			if name, joined := strings.CutPrefix(word, "-N"); joined {
				if name == "" && i+1 < len(words) {
					name = words[i+1]
				}
				return name != c.node.Name
			}
		}
		own := node.HostName()
		its, known := readHostNameOf(pid)
		return known && its != own && its != c.node.Name
	})
}

// readHostNameOf returns the first part of the host name that a process of another UTS namespace has, as which a slurmd
// without -N registers: that of a container with this PID namespace. It enters the namespace with a thread that ends
// with the call (setns(2)).
func readHostNameOf(pid int) (name string, known bool) {
	own, err := procfs.ReadNamespace(os.Getpid(), "uts")
	its, failed := procfs.ReadNamespace(pid, "uts")
	if err != nil || failed != nil || own == its {
		return "", false
	}
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/uts", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	err = onOtherThread(func() error {
		var names unix.Utsname
		if err := unix.Setns(fd, unix.CLONE_NEWUTS); err != nil {
			return err
		}
		defer func() { name, _, _ = strings.Cut(unix.ByteSliceToString(names.Nodename[:]), ".") }()
		return unix.Uname(&names)
	})
	return name, err == nil && name != ""
}

// findMissingOf returns the names of the capabilities that a process needs to give a step a jail, and lacks.
func findMissingOf(pid int) (missing []string) {
	status, err := procfs.ReadStatus("/proc", pid, "CapEff")
	if err != nil {
		return nil
	}
	effective, err := strconv.ParseUint(status[0], 16, 64)
	if err != nil {
		return nil
	}
	for _, one := range needed {
		if effective&(1<<one.number) == 0 {
			missing = append(missing, one.name)
		}
	}
	return missing
}

// checkSlurmdsView reports a slurmd with mounts of its own in which a jail's root is not the one of this check: the
// storage was mounted after it started, for example. The storage of the root has answered.
func (c *checker) checkSlurmdsView(j *config.Jail) bool {
	own, err := procfs.ReadNamespace(os.Getpid(), "mnt")
	if err != nil {
		return true
	}
	var here unix.Stat_t
	if unix.Stat(j.Root, &here) != nil {
		return true
	}
	for _, pid := range c.findSlurmds() {
		var there unix.Stat_t
		if procfs.LivesIn(pid, own) {
			continue
		}
		err := unix.Stat(fmt.Sprintf("/proc/%d/root%s", pid, j.Root), &there)
		if err == nil && there.Dev == here.Dev && there.Ino == here.Ino {
			continue
		}
		if _, err := procfs.ReadNamespace(pid, "mnt"); err != nil {
			continue // it has ended
		}
		c.fail("jail "+j.Name, "run: systemctl restart slurmd; if that does not help, remove PrivateMounts=, "+
			"PrivateTmp= and the like from its unit (systemctl cat slurmd)",
			"slurmd (process %d) has mounts of its own, in which %s is missing or another directory: each job in the "+
				"jail fails", pid, j.Root)
		return false
	}
	return true
}

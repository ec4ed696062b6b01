// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// unified says whether this machine has cgroup v2 and nothing else there.
func unified() bool {
	var fs unix.Statfs_t
	return unix.Statfs(cgroupRoot, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// controllers are the hierarchies of cgroup v1 here.
func controllers() []string {
	files, _ := filepath.Glob(cgroupRoot + "/*/tasks")
	for i, file := range files {
		files[i] = filepath.Dir(file)
	}
	return files
}

// subtrees are where this machine keeps what belongs to the machine named name:
// one directory with v2, one of each controller with v1.
func subtrees(name string) []string {
	if unified() {
		return []string{filepath.Join(cgroupRoot, "gojail-"+name)}
	}
	list := controllers()
	for i, dir := range list {
		list[i] = filepath.Join(dir, "gojail-"+name)
	}
	return list
}

// cgroupMounts is the machine's cgroup tree. Slurm manages a v2 tree only where
// every process is of its own PID namespace: the machine has a subtree to itself.
// With v1 it has that only if own; otherwise it sees this machine's.
func cgroupMounts(name string, own bool) []mountCall {
	const target, flags = "sys/fs/cgroup", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	switch {
	case unified():
		return []mountCall{{"cgroup2", target, "cgroup2", flags, ""}}
	case !own:
		return []mountCall{{cgroupRoot, target, "", unix.MS_BIND | unix.MS_REC, ""}}
	}
	mounts := []mountCall{{"tmpfs", target, "tmpfs", flags, "mode=755"}}
	for _, dir := range subtrees(name) {
		controller := filepath.Base(filepath.Dir(dir))
		mounts = append(mounts, mountCall{dir, filepath.Join(target, controller), "", unix.MS_BIND, ""})
	}
	return mounts
}

// ownCgroups makes the keeper's cgroup the root of what the machine sees. (A
// clone into a new cgroup would make it the starter's; and it is of one thread:
// the first, whose namespaces are the machine's.)
func ownCgroups(name string, own bool) error {
	if !unified() {
		if !own {
			return nil
		}
		if err := enterV1(name); err != nil {
			return err
		}
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("cluster: unshare the cgroup namespace: %w", err)
	}
	return nil
}

// enterV1 makes the machine's subtree of each controller and enters it.
func enterV1(name string) error {
	for _, dir := range subtrees(name) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("cluster: make a cgroup: %w", err)
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // empty at first, and of use to nobody (cpuset(7))
			if text, err := os.ReadFile(filepath.Join(dir, "..", file)); err == nil {
				if err := os.WriteFile(filepath.Join(dir, file), text, 0); err != nil {
					return fmt.Errorf("cluster: %w", err)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil {
			return fmt.Errorf("cluster: enter a cgroup: %w", err)
		}
	}
	return nil
}

// constrain is cgroup.conf and the plugins with which Slurm keeps each job to its
// devices. Of a GRES without a plugin of its own 22.05 does not: it must be "gpu".
func constrain() (cgroupConf string, slurmConf map[string]string) {
	cgroupConf = "CgroupPlugin=cgroup/v1\nConstrainDevices=yes\n"
	if unified() {
		cgroupConf = "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\nConstrainDevices=yes\n"
	}
	return cgroupConf, map[string]string{"ProctrackType": "proctrack/cgroup", "TaskPlugin": "task/cgroup"}
}

// startIn lets a process begin in the machine's cgroup; close it after the start.
func (c *Cluster) startIn(attr *syscall.SysProcAttr) (*os.File, error) {
	if !unified() {
		return nil, nil
	}
	path := subtrees(c.Name)[0]
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("cluster: make a cgroup: %w", err)
	}
	dir, err := os.Open(path)
	if err == nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
	}
	return dir, err
}

// removeCgroups removes the subtrees once all of their processes are gone.
func (c *Cluster) removeCgroups() error {
	var dirs []string
	for _, tree := range subtrees(c.Name) {
		filepath.WalkDir(tree, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
	}
	for _, dir := range slices.Backward(dirs) {
		if err := unix.Rmdir(dir); err != nil && err != unix.ENOENT {
			return fmt.Errorf("cluster: remove the cgroup %s: %w", dir, err)
		}
	}
	return nil
}

// inCgroup is a slurmd that starts in the cgroup of the machine's pid 1, as it
// must, and in the foreground: at its start each slurmd moves what it finds in
// the topmost cgroup to a leaf, and gives up should one of these end meanwhile.
func inCgroup(command ...string) []string {
	if !unified() {
		return command
	}
	enter := "read -r line </proc/1/cgroup && echo $$ >" + cgroupRoot + "${line#0::}/cgroup.procs && exec \"$@\" -D"
	return append([]string{"/bin/sh", "-c", "setsid /bin/sh -c '" + enter + "' sh \"$@\" </dev/null >/dev/null 2>&1 &", "sh"}, command...)
}

// waitCgroup waits until a slurmd has a cgroup of its own: until then no other
// may enter the topmost one.
func (c *Cluster) waitCgroup(node string) error {
	inLeaf := func() bool {
		for _, p := range c.Find("/usr/sbin/slurmd -N " + node) {
			text, _ := os.ReadFile(c.Path(fmt.Sprintf("/proc/%d/cgroup", p.Pid)))
			if strings.HasSuffix(strings.TrimSpace(string(text)), "/slurmd") {
				return true
			}
		}
		return false
	}
	if unified() && !Poll(Timeout, inLeaf) {
		return fmt.Errorf("cluster: slurmd of %s has made no cgroup for itself\n%s", node, c.logTails())
	}
	return nil
}

// prepareCgroups does what systemd does on a machine that has it: Slurm 22.05
// does not make this slice itself.
func (c *Cluster) prepareCgroups() error {
	if !unified() {
		return nil
	}
	if r := c.Root("mkdir", "-p", cgroupRoot+"/system.slice"); r.Code != 0 {
		return fmt.Errorf("cluster: system.slice: %s", r)
	}
	return nil
}

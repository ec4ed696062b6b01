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

// isUnified reports whether this machine has cgroup v2 only.
func isUnified() bool {
	var fs unix.Statfs_t
	return unix.Statfs(cgroupRoot, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC
}

// listControllers returns the hierarchies of cgroup v1 on this machine.
func listControllers() []string {
	files, _ := filepath.Glob(cgroupRoot + "/*/tasks")
	for i, file := range files {
		files[i] = filepath.Dir(file)
	}
	return files
}

// listSubtrees returns the directories of this machine's cgroups for the machine of that name: one with v2,
// one for each controller with v1.
func listSubtrees(name string) []string {
	if isUnified() {
		return []string{filepath.Join(cgroupRoot, "gojail-"+name)}
	}
	list := listControllers()
	for i, dir := range list {
		list[i] = filepath.Join(dir, "gojail-"+name)
	}
	return list
}

// listCgroupMounts returns the mounts of the machine's cgroup tree. Slurm manages a v2 tree only if every
// process there is in its own PID namespace: the machine has a subtree to itself. With v1 it has one only if
// own is set; otherwise it has this machine's tree.
func listCgroupMounts(name string, own bool) []mountCall {
	const target, flags = "sys/fs/cgroup", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	switch {
	case isUnified():
		return []mountCall{{"cgroup2", target, "cgroup2", flags, ""}}
	case !own:
		return []mountCall{{cgroupRoot, target, "", unix.MS_BIND | unix.MS_REC, ""}}
	}
	mounts := []mountCall{{"tmpfs", target, "tmpfs", flags, "mode=755"}}
	for _, dir := range listSubtrees(name) {
		controller := filepath.Base(filepath.Dir(dir))
		mounts = append(mounts, mountCall{dir, filepath.Join(target, controller), "", unix.MS_BIND, ""})
	}
	return mounts
}

// enterownCgroups makes the keeper's cgroup the root of the machine's cgroup namespace. A clone into a new
// cgroup would make it the starter's. It runs on the first thread, whose namespaces are the machine's.
func enterownCgroups(name string, own bool) error {
	if !isUnified() {
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
	for _, dir := range listSubtrees(name) {
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

// formatConstraints returns cgroup.conf and the plugins with which Slurm restricts jobs to their devices.
// 22.05 does not restrict a GRES without a plugin of its own: it must be "gpu".
func formatConstraints() (cgroupConf string, slurmConf map[string]string) {
	cgroupConf = "CgroupPlugin=cgroup/v1\nConstrainDevices=yes\n"
	if isUnified() {
		cgroupConf = "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\nConstrainDevices=yes\n"
	}
	return cgroupConf, map[string]string{"ProctrackType": "proctrack/cgroup", "TaskPlugin": "task/cgroup"}
}

// setCgroup lets a process begin in the machine's cgroup. The caller closes the file after the start.
func (c *Cluster) setCgroup(attr *syscall.SysProcAttr) (*os.File, error) {
	if !isUnified() {
		return nil, nil
	}
	path := listSubtrees(c.Name)[0]
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
	for _, tree := range listSubtrees(c.Name) {
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

// slurmdOutput is the file of what slurmd prints before it has opened its log.
const slurmdOutput = "/var/log/slurm/slurmd.out"

// startInTopCgroup starts a slurmd in the foreground, in the cgroup of the machine's pid 1, as it must: at its start each slurmd
// moves the processes of the topmost cgroup to a leaf, and fails if one of them ends meanwhile. It enters the machine's cgroup
// namespace only afterwards: that is a boundary for moves where the tree is mounted with nsdelegate, as systemd does (cgroups(7)).
func (c *Cluster) startInTopCgroup(command ...string) error {
	r := c.Root("cat", "/proc/1/cgroup")
	if r.Code != 0 {
		return fmt.Errorf("cluster: the cgroup of pid 1: %s", r)
	}
	top := cgroupRoot + strings.TrimPrefix(strings.TrimSpace(r.Stdout), "0::")
	enter := "echo $$ >" + top + "/cgroup.procs && exec nsenter --cgroup=/proc/1/ns/cgroup \"$@\" -D"
	background := "setsid /bin/sh -c '" + enter + "' sh \"$@\" </dev/null >>" + slurmdOutput + " 2>&1 &"
	return c.startDaemon(Command{ownCgroup: true, Args: append([]string{"/bin/sh", "-c", background, "sh"}, command...)})
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
	if isUnified() && !Poll(Timeout, inLeaf) {
		return fmt.Errorf("cluster: slurmd of %s has made no cgroup for itself\n%s", node, c.logTails())
	}
	return nil
}

// prepareCgroups does what systemd does on a machine that has it: Slurm 22.05
// does not make this slice itself.
func (c *Cluster) prepareCgroups() error {
	if !isUnified() {
		return nil
	}
	if r := c.Root("mkdir", "-p", cgroupRoot+"/system.slice"); r.Code != 0 {
		return fmt.Errorf("cluster: system.slice: %s", r)
	}
	return nil
}

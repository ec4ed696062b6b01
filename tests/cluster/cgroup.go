// SPDX-License-Identifier: Apache-2.0

package cluster

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

// cgroupMount is the machine's cgroup tree. Slurm manages a v2 tree only where
// every process is of its own PID namespace: the machine has a subtree to itself.
func cgroupMount() mountCall {
	if unified() {
		return mountCall{"cgroup2", "sys/fs/cgroup", "cgroup2", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""}
	}
	return mountCall{cgroupRoot, "sys/fs/cgroup", "", unix.MS_BIND | unix.MS_REC, ""}
}

// ownCgroups makes the keeper's cgroup the root of what the machine sees. (A
// clone into a new cgroup would make it the starter's; and it is of one thread:
// the first, whose namespaces are the machine's.)
func ownCgroups() error {
	if !unified() {
		return nil
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("cluster: unshare the cgroup namespace: %w", err)
	}
	return nil
}

// cgroup is the directory of the machine's subtree in this machine's tree.
func (c *Cluster) cgroup() string { return filepath.Join(cgroupRoot, "gojail-"+c.Name) }

// startIn lets a process begin in the machine's cgroup; close it after the start.
func (c *Cluster) startIn(attr *syscall.SysProcAttr) (*os.File, error) {
	if !unified() {
		return nil, nil
	}
	if err := os.MkdirAll(c.cgroup(), 0o755); err != nil {
		return nil, fmt.Errorf("cluster: make a cgroup: %w", err)
	}
	dir, err := os.Open(c.cgroup())
	if err == nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
	}
	return dir, err
}

// removeCgroups removes the subtree once all of its processes are gone.
func (c *Cluster) removeCgroups() error {
	if !unified() {
		return nil
	}
	var dirs []string
	filepath.WalkDir(c.cgroup(), func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
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
		return fmt.Errorf("cluster: slurmd of %s has made no cgroup for itself\n%s", node, c.LogTails())
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

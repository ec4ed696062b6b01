// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// group is the cgroup of one candidate: GROUP/slurmd for slurmd and what it
// starts, GROUP and GROUP/gojail for what leaves Slurm's cgroups.
type group struct {
	root string // of the hierarchy, which the node sees its own group as
	path string
	v2   bool
	jobs []string // with -cgroups: where Slurm keeps the node's jobs, in the hierarchies of jobHierarchies
}

// jobHierarchies are those of version 1 that proctrack/cgroup and task/cgroup use with cgroupConf.
var jobHierarchies = []string{"freezer", "memory", "devices"}

// findHierarchy returns the cgroup hierarchy that counts CPU time: cpuacct of version 1, or version 2.
func findHierarchy() (root string, v2 bool, err error) {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		return "/sys/fs/cgroup", true, nil
	}
	if _, err := os.Stat("/sys/fs/cgroup/cpuacct/cpuacct.usage"); err == nil {
		return "/sys/fs/cgroup/cpuacct", false, nil
	}
	return "", false, errors.New("bench: no cgroup hierarchy counts CPU time: neither version 2 nor cpuacct at /sys/fs/cgroup")
}

const cgroupConf = "CgroupPlugin=cgroup/v1\nConstrainRAMSpace=yes\nConstrainDevices=yes\n"

// makeGroups makes a cgroup for each candidate below one of this process, and with jobs one for Slurm's.
func makeGroups(chosen []candidate, jobs bool) (map[string]group, func(), error) {
	root, v2, err := findHierarchy()
	if err != nil {
		return nil, nil, err
	}
	roots := []string{root}
	if jobs && v2 {
		return nil, nil, errors.New("bench: -cgroups needs a machine with cgroup version 1; leave it out")
	} else if jobs {
		for _, name := range jobHierarchies {
			roots = append(roots, filepath.Join("/sys/fs/cgroup", name))
		}
	}
	own := fmt.Sprintf("gojail-bench-%d", os.Getpid())
	remove := func() {
		for _, root := range roots {
			removeGroups(filepath.Join(root, own))
		}
	}
	for _, root := range roots {
		removeStale(root)
	}
	groups := map[string]group{}
	for _, c := range chosen {
		g := group{root: root, path: filepath.Join(root, own, c.name), v2: v2}
		for _, root := range roots[1:] {
			g.jobs = append(g.jobs, filepath.Join(root, own, c.name))
		}
		for _, dir := range append([]string{filepath.Join(g.path, "slurmd")}, g.jobs...) {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				remove()
				return nil, nil, fmt.Errorf("bench: make a cgroup: %w", err)
			}
		}
		groups[c.name] = g
	}
	return groups, remove, nil
}

// removeStale removes the cgroups that a killed bench left.
func removeStale(root string) {
	old, _ := filepath.Glob(filepath.Join(root, "gojail-bench-*"))
	for _, base := range old {
		_, pid, _ := strings.Cut(filepath.Base(base), "bench-")
		if _, err := os.Stat("/proc/" + pid); err != nil {
			removeGroups(base)
		}
	}
}

// removeGroups removes a cgroup and those below it, once their processes are gone.
func removeGroups(base string) {
	for range 100 {
		var dirs []string
		filepath.WalkDir(base, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for i := len(dirs) - 1; i >= 0; i-- {
			os.Remove(dirs[i])
		}
		if _, err := os.Stat(base); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	fmt.Fprintf(os.Stderr, "bench: the cgroup %s could not be removed\n", base)
}

// readCPU returns the CPU time used so far by all processes that were ever in the group.
func (g group) readCPU() (time.Duration, error) {
	if !g.v2 {
		text, err := os.ReadFile(filepath.Join(g.path, "cpuacct.usage"))
		if err != nil {
			return 0, err
		}
		ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		return time.Duration(ns), err
	}
	text, err := os.ReadFile(filepath.Join(g.path, "cpu.stat"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "usage_usec "); found {
			us, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return time.Duration(us) * time.Microsecond, err
		}
	}
	return 0, fmt.Errorf("bench: %s/cpu.stat has no usage_usec", g.path)
}

// listPids returns the processes of GROUP/slurmd, or of the rest of the group.
func (g group) listPids(slurmd bool) []int {
	files := []string{"slurmd/cgroup.procs"}
	if !slurmd {
		files = []string{"cgroup.procs", "gojail/cgroup.procs"}
	}
	var pids []int
	for _, file := range files {
		text, _ := os.ReadFile(filepath.Join(g.path, file))
		for word := range strings.FieldsSeq(string(text)) {
			pid, _ := strconv.Atoi(word)
			pids = append(pids, pid)
		}
	}
	return pids
}

// waitUntilIdle waits until no more processes of Slurm are in the group than at rest and slurmd has
// nothing to do, and returns the CPU time used by then.
func (g group) waitUntilIdle(atRest int) (time.Duration, error) {
	last, quiet := time.Duration(-1), 0
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(4 * time.Millisecond) {
		used, err := g.readCPU()
		if err != nil {
			return 0, err
		}
		// slurmd's threads may wait for a message of the controller: two looks more.
		if len(g.listPids(true)) == atRest && used-last < 50*time.Microsecond {
			quiet++
		} else {
			quiet = 0
		}
		if last = used; quiet >= 3 {
			return used, nil
		}
	}
	return 0, fmt.Errorf("bench: %s does not come to rest: processes %v", g.path, g.listPids(true))
}

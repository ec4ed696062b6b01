// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Process is one process of the cluster, by its pid inside the machine.
type Process struct {
	Pid     int
	Command string            // the command line, arguments parted by blanks
	Mounts  string            // its mount namespace, "mnt:[4026...]"
	Status  map[string]string // lines of /proc/PID/status: PPid, Threads, SigBlk, ...
}

// Processes lists every process of the cluster but pid 1, zombies as well.
func (c *Cluster) Processes() []Process {
	var all []Process
	dirs, _ := filepath.Glob(c.Path("/proc/[0-9]*"))
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if p, err := c.Process(pid); err == nil && pid != 1 {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b Process) int { return a.Pid - b.Pid })
	return all
}

// Process reads one process of the cluster.
func (c *Cluster) Process(pid int) (Process, error) {
	dir := c.Path(fmt.Sprintf("/proc/%d", pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return Process{}, err
	}
	p := Process{Pid: pid, Status: map[string]string{}}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		p.Status[key] = strings.TrimSpace(value)
	}
	command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	p.Command = strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " "))
	if p.Command == "" {
		p.Command = "[" + p.Status["Name"] + "]"
	}
	p.Mounts, _ = os.Readlink(filepath.Join(dir, "ns/mnt"))
	return p, nil
}

// Find returns the processes whose command line contains the text.
func (c *Cluster) Find(text string) []Process {
	all := c.Processes()
	return slices.DeleteFunc(all, func(p Process) bool { return !strings.Contains(p.Command, text) })
}

// Inventory returns what jobs must not add to: processes, mounts and mount namespaces of the machine, and the
// files of the directories. Each zygote may have a spare and a prober.
func (c *Cluster) Inventory(directories ...string) []string {
	var found []string
	namespaces := map[string]bool{}
	all := c.Processes()
	templates := map[string]bool{} // by pid of their zygote
	for _, p := range all {
		if p.Status["Name"] == "gojail-zygote" {
			templates[strconv.Itoa(p.Pid)] = true
		}
	}
	left := map[string]bool{}
	for _, p := range all {
		name, parent := p.Status["Name"], p.Status["PPid"]
		if (name == "gojail-spare" || name == "gojail-prober") && templates[parent] && !left[name+parent] {
			left[name+parent] = true
			continue
		}
		if !strings.Contains(p.Command, "slurmctld") { // starts children of its own as it likes
			found = append(found, "process "+p.Command)
		}
		namespaces[p.Mounts] = true
	}
	found = append(found, fmt.Sprintf("%d mount namespaces", len(namespaces)))
	mounts, _ := os.ReadFile(c.Path("/proc/1/mountinfo"))
	for line := range strings.Lines(string(mounts)) {
		found = append(found, "mount "+strings.Fields(line)[4])
	}
	for _, dir := range directories {
		root := c.Path(dir)
		filepath.WalkDir(root, func(path string, _ os.DirEntry, _ error) error {
			found = append(found, "file "+dir+strings.TrimPrefix(path, root))
			return nil
		})
	}
	slices.Sort(found)
	return found
}

// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/procfs"
)

// process is a process of the node.
type process struct {
	procfs.Stat
	pid, dir string
}

// listProcesses returns the node's processes, read once for all checks of a run.
func listProcesses(h *check.Host) ([]process, error) {
	return check.ReadOnce(h.Shared, "processes", func() ([]process, error) { return readProcesses(h.Roots.Proc) })
}

// readProcesses reads the processes from /proc.
func readProcesses(proc string) ([]process, error) {
	pids, err := procfs.ListNumbers(proc)
	if err != nil {
		return nil, err
	}
	all := make([]process, 0, len(pids))
	buffer := make([]byte, 4096) // the kernel writes at most one page
	for _, pid := range pids {
		name := strconv.Itoa(pid)
		text, err := readPage(proc+"/"+name+"/stat", buffer)
		if err != nil {
			continue // the process has ended
		}
		if stat, ok := procfs.ParseStat(text); ok {
			all = append(all, process{stat, name, proc + "/" + name})
		}
	}
	return all, nil
}

// isRoot reports whether the process runs as root.
func (p *process) isRoot() bool {
	var st unix.Stat_t
	return unix.Lstat(p.dir, &st) == nil && st.Uid == 0
}

// isSystem reports whether the process runs as root or a system account (UID below 1000).
func (p *process) isSystem() bool {
	var st unix.Stat_t
	return unix.Lstat(p.dir, &st) == nil && st.Uid < 1000
}

// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"os"

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
	return check.ReadOnce(h.Shared, "processes", func() ([]process, error) { return processes(h.Roots.Proc) })
}

func processes(proc string) ([]process, error) {
	dir, err := os.Open(proc)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	fd := int(dir.Fd())
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make([]process, 0, len(names))
	buffer := make([]byte, 4096) // a page is what the kernel makes of it
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		text, err := readOnce(fd, name+"/stat", buffer)
		if err != nil {
			continue // it has ended meanwhile
		}
		if stat, ok := procfs.ParseStat(text); ok {
			all = append(all, process{stat, name, proc + "/" + name})
		}
	}
	return all, nil
}

// root is whether it is root's.
func (p *process) root() bool {
	var st unix.Stat_t
	return unix.Lstat(p.dir, &st) == nil && st.Uid == 0
}

// system is whether it is root's or a system account's (UID below 1000).
func (p *process) system() bool {
	var st unix.Stat_t
	return unix.Lstat(p.dir, &st) == nil && st.Uid < 1000
}

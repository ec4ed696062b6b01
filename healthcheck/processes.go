// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// process is what /proc/PID/stat tells, which never hangs: cmdline waits for a lock
// that a process may hold which is stuck in the kernel.
type process struct {
	pid, dir           string
	name, state, start string
}

// Shared is what several checks of one process look at, looked at once.
type Shared struct {
	once      sync.Once
	processes []process
	err       error

	busOnce  sync.Once
	bus      []string // GPUs
	busError error
}

// processes lists those of the node.
func (h *Host) processes() ([]process, error) {
	if h.Shared == nil {
		return processes(h.Roots.Proc)
	}
	h.Shared.once.Do(func() { h.Shared.processes, h.Shared.err = processes(h.Roots.Proc) })
	return h.Shared.processes, h.Shared.err
}

func processes(proc string) ([]process, error) {
	dir, err := os.Open(proc)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make([]process, 0, len(names))
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		p := process{pid: name, dir: filepath.Join(proc, name)}
		text, err := readAt(int(dir.Fd()), name+"/stat")
		if err != nil {
			continue // it has ended meanwhile
		}
		var ok bool
		if p.name, p.state, p.start, ok = parseStat(text); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

// parseStat takes the name between the first and the last parenthesis: it may have any in it (proc_pid_stat(5)).
func parseStat(text []byte) (name, state, start string, ok bool) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return "", "", "", false
	}
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 20 {
		return "", "", "", false
	}
	return string(text[open+1 : end]), fields[0], fields[19], true
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

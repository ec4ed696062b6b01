// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
)

// process is what /proc/PID/stat tells, which never hangs: cmdline waits for a lock
// that a process may hold which is stuck in the kernel.
type process struct {
	pid, dir           string
	name, state, start string
	kernel             bool // one of the kernel's threads
}

// A flag of /proc/PID/stat, of linux/sched.h.
const kernelThread = 0x00200000

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
		if p, ok := parseStat(text); ok {
			p.pid, p.dir = name, proc+"/"+name
			all = append(all, p)
		}
	}
	return all, nil
}

// parseStat takes the name between the first and the last parenthesis: it may have any in it (proc_pid_stat(5)).
func parseStat(text []byte) (p process, ok bool) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return p, false
	}
	field := 3
	for word := range bytes.FieldsSeq(text[end+1:]) { // " S 1 2 ...": the state is field 3, flags are field 9, the start field 22
		switch field {
		case 3:
			p.state = string(word)
		case 9:
			flags, _ := digits(string(word))
			p.kernel = flags&kernelThread != 0
		case 22:
			p.start, p.name = string(word), string(text[open+1:end])
			return p, true
		}
		field++
	}
	return p, false
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

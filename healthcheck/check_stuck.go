// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A process counts as stuck when this many runs in a row have seen it in D state.
const stuckRuns = 5

// stuck finds processes that wait in the kernel and cannot be killed. It reads
// /proc/PID/stat alone: cmdline waits for a lock that such a process may hold.
func stuck(_ context.Context, h *Host, _ *Settings) Finding {
	entries, err := os.ReadDir(h.Roots.Proc)
	if err != nil {
		return Found(Unknown, "cannot list processes: %v", err)
	}
	var before map[string]int
	if json.Unmarshal(h.Kept, &before) != nil {
		before = nil
	}
	now, seen := map[string]int{}, 0
	var p problems
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		dir := filepath.Join(h.Roots.Proc, e.Name())
		text, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // it has ended meanwhile
		}
		name, state, start, ok := parseStat(text)
		if !ok {
			continue
		}
		seen++
		if state != "D" {
			continue
		}
		id := e.Name() + "/" + start
		now[id] = before[id] + 1
		if now[id] >= stuckRuns {
			judgeStuck(&p, name, rootOwned(dir))
		}
	}
	if seen == 0 {
		return Found(Unknown, "%s shows no processes", h.Roots.Proc)
	}
	f := p.finding("no process is stuck in the kernel")
	f.Keep, _ = json.Marshal(now)
	f.Metrics = []Metric{{Name: "processes_uninterruptible", Help: "Processes in D state.", Value: float64(len(now))}}
	return f
}

// judgeStuck lets a process drain the node only if no user could have made it: a
// name is anybody's to choose, and a file system in user space hangs at will.
func judgeStuck(p *problems, name string, root bool) {
	if root && (strings.HasPrefix(name, "nvidia") || strings.HasPrefix(name, "gojail-")) {
		p.failed("stuck in the kernel: %.20s", name)
		return
	}
	p.warned("stuck in the kernel: %.20s", name)
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

func rootOwned(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Uid == 0
}

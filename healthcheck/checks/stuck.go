// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
)

// A process counts as stuck when this many runs in a row have seen it in D state.
const stuckRuns = 5

// stuck finds processes that wait in the kernel and cannot be killed.
func stuck(_ context.Context, h *check.Host, _ *check.Settings) check.Finding {
	all, err := listProcesses(h)
	if err != nil {
		return check.Found(check.Unknown, "cannot list processes: %v", err)
	}
	if len(all) == 0 {
		return check.Found(check.Unknown, "%s shows no processes", h.Roots.Proc)
	}
	var before map[string]int
	if json.Unmarshal(h.Kept, &before) != nil {
		before = nil
	}
	now := map[string]int{}
	var p problems
	for _, one := range all {
		if one.State != 'D' {
			continue
		}
		id := fmt.Sprintf("%s/%d", one.pid, one.Start)
		now[id] = before[id] + 1
		if now[id] >= stuckRuns {
			judgeStuck(&p, &one)
		}
	}
	f := p.finding("no process is stuck in the kernel")
	f.Keep, _ = json.Marshal(now)
	f.Metrics = []check.Metric{{Name: "processes_uninterruptible", Help: "Processes in D state.", Value: float64(len(now))}}
	return f
}

// judgeStuck lets a process drain the node only if no user could have made it.
func judgeStuck(p *problems, one *process) {
	if strings.HasPrefix(one.Name, "nvidia") || strings.HasPrefix(one.Name, "gojail-") {
		if one.Kernel || one.root() && one.ours() {
			p.failed("stuck in the kernel: %.20s", one.Name)
			return
		}
	}
	p.warned("stuck in the kernel: %.20s", one.Name)
}

// ours is a program of gojail or a service of NVIDIA's. That root runs it under that
// name does not do: a user may start any program with root's rights (set-user-ID) by a
// link of any name, and have it write to a file system of his own, which hangs at will.
func (p *process) ours() bool {
	exe, _ := os.Readlink(p.dir + "/exe")
	groups, _ := read(p.dir + "/cgroup")
	return strings.HasPrefix(filepath.Base(exe), "gojail-") || strings.Contains(string(groups), "/system.slice/nvidia")
}

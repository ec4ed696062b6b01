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

// stuckRuns is the number of consecutive runs in D state after which a process counts as stuck.
const stuckRuns = 5

// stuck reports processes that wait in the kernel and cannot be killed.
func stuck(_ context.Context, h *check.Host, _ *check.Settings) check.Finding {
	all, err := listProcesses(h)
	if err != nil {
		return check.NewFinding(check.Unknown, "cannot list processes: %v", err)
	}
	if len(all) == 0 {
		return check.NewFinding(check.Unknown, "%s shows no processes", h.Roots.Proc)
	}
	var before map[string]int
	if json.Unmarshal(h.State, &before) != nil {
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
	f := p.buildFinding("no process is stuck in the kernel")
	f.State, _ = json.Marshal(now)
	f.Metrics = []check.Metric{{Name: "processes_uninterruptible", Help: "Processes in D state.",
		Value: float64(len(now))}}
	return f
}

// judgeStuck adds a stuck process; it drains the node only if no user can have caused it.
func judgeStuck(p *problems, one *process) {
	if strings.HasPrefix(one.Name, "nvidia") || strings.HasPrefix(one.Name, "gojail-") {
		if one.Kernel || one.isRoot() && one.isOurService() {
			p.addFailure("stuck in the kernel: %.20s", one.Name)
			return
		}
	}
	p.addWarning("stuck in the kernel: %.20s", one.Name)
}

// isOurService reports whether the process is a program of gojail or a service of NVIDIA. A
// name and root's UID are not sufficient: a user may start any set-user-ID program through a
// link of any name, and have it write to his own file system, which can hang at will.
func (p *process) isOurService() bool {
	exe, _ := os.Readlink(p.dir + "/exe")
	groups, _ := readFile(p.dir + "/cgroup")
	return strings.HasPrefix(filepath.Base(exe), "gojail-") || strings.Contains(string(groups), "/system.slice/nvidia")
}

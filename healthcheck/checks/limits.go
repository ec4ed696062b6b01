// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
)

// nearLimit is the percentage of a kernel limit at which the check warns.
const nearLimit = 80

// manyZombies is the number of zombies above which a parent that does not reap them is likely
// broken.
const manyZombies = 1000

// limits checks resources that run out for all users: processes, open files, and process
// entries held by zombies.
func limits(_ context.Context, h *check.Host, _ *check.Settings) check.Finding {
	all, err := listProcesses(h)
	if err != nil || len(all) == 0 {
		return check.NewFinding(check.Unknown, "cannot list processes")
	}
	zombies := 0
	for _, one := range all {
		if one.State == 'Z' {
			zombies++
		}
	}
	files, ok := readProcNumbers(h, "sys/fs/file-nr") // allocated, free, maximum
	load, ok2 := readProcNumbers(h, "loadavg")        // 1, 5, 15 minutes, running tasks/all tasks, last pid
	most, ok3 := readProcNumbers(h, "sys/kernel/pid_max")
	var p problems
	if zombies >= manyZombies {
		p.addWarning("there are %d or more zombies that their parents do not reap", manyZombies)
	}
	if !ok || len(files) < 3 || files[2] <= 0 {
		p.addUnknown("cannot parse the number of open files")
	} else if 100*files[0] >= nearLimit*files[2] {
		p.addWarning("open files are at %d%% of the kernel's limit", nearLimit)
	}
	if !ok2 || !ok3 || len(load) < 5 || most[0] <= 0 {
		p.addUnknown("cannot parse the number of processes")
	} else if 100*load[4] >= nearLimit*most[0] {
		p.addWarning("processes are at %d%% of the kernel's limit", nearLimit)
	}
	f := p.buildFinding("processes and open files are below the kernel's limits")
	f.Metrics = []check.Metric{{Name: "processes_zombie", Help: "Zombies that their parents have not reaped.",
		Value: float64(zombies)}}
	return f
}

// readProcNumbers returns the numbers in a file of /proc; "1/2" counts as two numbers.
func readProcNumbers(h *check.Host, name string) (all []float64, ok bool) {
	text, err := readFile(filepath.Join(h.Roots.Proc, name))
	for _, word := range strings.Fields(strings.ReplaceAll(string(text), "/", " ")) {
		n, e := strconv.ParseFloat(word, 64)
		if e != nil {
			return nil, false
		}
		all = append(all, n)
	}
	return all, err == nil && len(all) > 0
}

// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
)

// What a node has no room for more of, in percent of the kernel's own limit.
const nearLimit = 80

// More dead processes than this, that nobody asks for, tell of a broken parent.
const manyZombies = 1000

// limits looks at what runs out for everybody: processes, open files, and the
// entries of dead processes.
func limits(_ context.Context, h *check.Host, _ *check.Settings) check.Finding {
	all, err := listProcesses(h)
	if err != nil || len(all) == 0 {
		return check.Found(check.Unknown, "cannot list processes")
	}
	zombies := 0
	for _, one := range all {
		if one.State == 'Z' {
			zombies++
		}
	}
	files, ok := procNumbers(h, "sys/fs/file-nr") // allocated, free, most
	load, ok2 := procNumbers(h, "loadavg")        // 1, 5, 15 minutes, tasks that run/all of them, last pid
	most, ok3 := procNumbers(h, "sys/kernel/pid_max")
	var p problems
	if zombies >= manyZombies {
		p.warned("there are %d dead processes or more that their parents leave", manyZombies)
	}
	if !ok || len(files) < 3 || files[2] <= 0 {
		p.unclear("the number of open files is not understood")
	} else if 100*files[0] >= nearLimit*files[2] {
		p.warned("open files are at %d%% of what the kernel lets be", nearLimit)
	}
	if !ok2 || !ok3 || len(load) < 5 || most[0] <= 0 {
		p.unclear("the number of processes is not understood")
	} else if 100*load[4] >= nearLimit*most[0] {
		p.warned("processes are at %d%% of what the kernel lets be", nearLimit)
	}
	f := p.finding("processes and open files are below the kernel's limits")
	f.Metrics = []check.Metric{{Name: "processes_zombie", Help: "Dead processes that their parents leave.", Value: float64(zombies)}}
	return f
}

// procNumbers are the numbers of a file of /proc, "1/2" being two of them.
func procNumbers(h *check.Host, name string) (all []float64, ok bool) {
	text, err := read(filepath.Join(h.Roots.Proc, name))
	for _, word := range strings.Fields(strings.ReplaceAll(string(text), "/", " ")) {
		n, e := strconv.ParseFloat(word, 64)
		if e != nil {
			return nil, false
		}
		all = append(all, n)
	}
	return all, err == nil && len(all) > 0
}

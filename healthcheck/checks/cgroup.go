// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
)

// Where Slurm's plugins put jobs, cgroup v2 and v1, below the root of cgroups. The
// name of a job's cgroup has its number, but for Slurm 26.05 and later, which names
// them by SLUID: those are not looked at.
var jobGroups = []string{"system.slice/*slurmstepd.scope/job_*", "freezer/slurm*/uid_*/job_*"}

// The controllers that Slurm constrains jobs by, where v2 has them at all.
var controllers = []string{"cpuset", "cpu", "memory"}

// cgroups looks for processes in cgroups of jobs that have no slurmstepd any more,
// and whether Slurm's part of the tree has its controllers.
func cgroups(_ context.Context, h *check.Host, _ *check.Settings) check.Finding {
	root := filepath.Join(h.Roots.Sys, "fs/cgroup")
	var p problems
	scopes := matches(root, "system.slice/*slurmstepd.scope")
	for _, scope := range scopes {
		missingControllers(&p, root, scope)
	}
	var groups []string
	for _, pattern := range jobGroups {
		groups = append(groups, matches(root, pattern)...)
	}
	if len(scopes) == 0 && len(groups) == 0 {
		return check.Found(check.NotApplicable, "Slurm has no cgroups here")
	}
	running, err := stepJobs(h)
	if err != nil {
		return check.Found(check.Unknown, "cannot list processes: %v", err)
	}
	var before, now []string
	if json.Unmarshal(h.Kept, &before) != nil {
		before = nil
	}
	for _, group := range groups {
		job := strings.TrimPrefix(filepath.Base(group), "job_")
		if _, ok := digits(job); !ok || running[job] || !occupied(group) {
			continue
		}
		now = append(now, group)
		if slices.Contains(before, group) { // in one run alone it may have begun or ended just now
			p.warned("processes of jobs that have ended are left")
			p.note("job %s", job)
		}
	}
	f := p.finding("Slurm's cgroups are in order")
	f.Keep, _ = json.Marshal(now)
	return f
}

func missingControllers(p *problems, root, scope string) {
	there, ok := sysText(root, "cgroup.controllers")
	has, ok2 := sysText(scope, "cgroup.controllers")
	if !ok || !ok2 {
		return // version 1
	}
	for _, c := range controllers {
		if slices.Contains(strings.Fields(there), c) && !slices.Contains(strings.Fields(has), c) {
			p.warned("the cgroup controller %s is not given to Slurm", c)
		}
	}
}

// occupied tells whether there are processes in a cgroup or below it.
func occupied(group string) bool {
	found := false
	_ = filepath.WalkDir(group, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil
		}
		if pids, _ := sysText(path, "cgroup.procs"); pids != "" {
			found = true
			return filepath.SkipAll
		}
		return nil
	})
	return found
}

// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
)

// jobGroups are the cgroups in which Slurm's plugins put jobs, v2 and v1, as patterns below the
// root of cgroups. With --enable-multiple-slurmd, which Debian builds with, the scope begins with the
// node's name.
var jobGroups = []string{"system.slice/*slurmstepd.scope/*", "freezer/slurm*/uid_*/job_*"}

// jobGroup matches the base name of a job's cgroup: its number, or from Slurm 26.05 on its SLUID,
// unless cgroup.conf has CgroupJobIdPaths=yes.
var jobGroup = regexp.MustCompile(`^(job_[0-9]+|s[0-9A-Z]{13})$`)

// controllers are the controllers that Slurm uses to constrain jobs, as far as cgroup v2
// provides them.
var controllers = []string{"cpuset", "cpu", "memory"}

// cgroups warns of processes in the cgroups of jobs that have no slurmstepd, and of controllers
// that are not delegated to Slurm.
func cgroups(_ context.Context, h *check.Host, _ *check.Settings) check.Finding {
	root := filepath.Join(h.Roots.Sys, "fs/cgroup")
	var p problems
	scopes := findMatches(root, "system.slice/*slurmstepd.scope")
	for _, scope := range scopes {
		checkControllers(&p, root, scope)
	}
	var groups []string
	for _, pattern := range jobGroups {
		groups = append(groups, findMatches(root, pattern)...)
	}
	groups = slices.DeleteFunc(groups, func(group string) bool { return !jobGroup.MatchString(filepath.Base(group)) })
	if len(scopes) == 0 && len(groups) == 0 {
		return check.NewFinding(check.NotApplicable, "Slurm uses no cgroups on this node")
	}
	running, err := findSteps(h)
	if err != nil {
		return check.NewFinding(check.Unknown, "cannot list processes: %v", err)
	}
	var before, now []string
	if json.Unmarshal(h.State, &before) != nil {
		before = nil
	}
	for _, group := range groups {
		job := strings.TrimPrefix(filepath.Base(group), "job_")
		if running.jobs[job] || running.groups[filepath.Base(group)] || !hasProcesses(group) {
			continue
		}
		now = append(now, group)
		if slices.Contains(before, group) { // a job may have started or ended during a single run
			p.addWarning("processes of ended jobs remain")
			p.addNote("job %s", job)
		}
	}
	f := p.buildFinding("Slurm's cgroups are correct")
	f.State, _ = json.Marshal(now)
	return f
}

// checkControllers warns of controllers that the root cgroup has and Slurm's cgroup lacks.
func checkControllers(p *problems, root, scope string) {
	there, ok := readSysText(root, "cgroup.controllers")
	has, ok2 := readSysText(scope, "cgroup.controllers")
	if !ok || !ok2 {
		return // cgroup v1
	}
	for _, c := range controllers {
		if slices.Contains(strings.Fields(there), c) && !slices.Contains(strings.Fields(has), c) {
			p.addWarning("the cgroup controller %s is not delegated to Slurm", c)
		}
	}
}

// hasProcesses reports whether a cgroup or any cgroup below it has processes.
func hasProcesses(group string) bool {
	found := false
	_ = filepath.WalkDir(group, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil
		}
		if pids, _ := readSysText(path, "cgroup.procs"); pids != "" {
			found = true
			return filepath.SkipAll
		}
		return nil
	})
	return found
}

// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"bytes"
	"path"
	"regexp"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
)

// steps is what the slurmstepd processes of a node say about its jobs.
type steps struct {
	jobs   map[string]bool // numbers of jobs
	groups map[string]bool // base names of the cgroups of jobs
}

// findSteps finds root's slurmstepd processes: the job is in the title that they set,
// "slurmstepd: [17.batch]", and their cgroup is below that of the job, whatever its name is.
func findSteps(h *check.Host) (*steps, error) {
	all, err := listProcesses(h)
	if err != nil {
		return nil, err
	}
	s := &steps{map[string]bool{}, map[string]bool{}}
	for _, one := range all {
		if one.Name != "slurmstepd" || !one.isRoot() {
			continue // reading the title of other processes can hang
		}
		title, err := readFile(one.dir + "/cmdline")
		if err != nil {
			continue
		}
		_, step, found := bytes.Cut(title, []byte("["))
		job, _, found2 := bytes.Cut(step, []byte("."))
		if found && found2 {
			s.jobs[string(job)] = true
		}
		groups, _ := readFile(one.dir + "/cgroup")
		for line := range strings.Lines(string(groups)) {
			if group := findJobGroup(strings.TrimSpace(line)); group != "" {
				s.groups[group] = true
			}
		}
	}
	return s, nil
}

// findJobGroup returns the base name of the job's cgroup in a line of /proc/PID/cgroup: the directory above that of
// the step. It is "" if the process is in no step's cgroup.
func findJobGroup(line string) string {
	_, rest, _ := strings.Cut(line, ":")
	_, group, _ := strings.Cut(rest, ":")
	i := strings.LastIndex(group, "/step_")
	if i < 0 {
		return ""
	}
	return path.Base(group[:i])
}

// stepCgroup matches the line of /proc/PID/cgroup of a process in a step of a job, v2 and v1. Below his own slice a
// user may give cgroups any name.
var stepCgroup = regexp.MustCompile(`(?m)^(0::/system\.slice/[^/]*slurmstepd\.scope/|` +
	`[0-9]+:[^:]+:/slurm[^/]*/uid_[0-9]+/)` +
	`(job_[0-9]+|s[0-9A-Z]{13})/step_`)

// isInStep reports whether the text of a /proc/PID/cgroup is that of a process in a step of a job.
func isInStep(text string) bool { return stepCgroup.MatchString(text) }

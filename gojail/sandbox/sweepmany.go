// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/command"
)

// Limits of one question about many jobs. For one job squeue asks slurmctld about that job; for several it loads all
// jobs of the cluster.
const (
	askTogether = 8   // smallest number of jobs for which one question is cheaper
	askMost     = 500 // largest number: the answer is the older, the more jobs are ended after it
)

// askAbout asks slurmctld about many jobs at once, and stores the verdicts for askController, which asks about each job
// without a verdict alone.
func (s *sweep) askAbout(jobs []string) {
	s.verdicts = nil
	if len(jobs) < askTogether || s.squeue == "" || !s.ask {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), squeueDeadline)
	defer cancel()
	text, err := runSqueue(ctx, s.squeue, s.config.Slurm.Conf,
		"-t", "all", "-o", "%A %T %F", "-j", strings.Join(jobs, ","), "--local")
	if err != nil || len(text) >= command.OutputMost { // with the limit reached, jobs at the end are missing
		return
	}
	verdicts, unlisted := readVerdicts(jobs, text)
	// squeue does not list jobs that slurmctld does not know. Before they are ended, askController confirms that for
	// one of them: a squeue that prints nothing, such as a wrapper of the site, must not end them all.
	if len(unlisted) > 0 && s.askController(unlisted[0]) == "" {
		for _, job := range unlisted {
			verdicts[job] = ""
		}
	}
	s.verdicts = verdicts
}

// readVerdicts parses squeue's lines "JOB STATE ARRAY" about many jobs. It returns the verdicts about the jobs that are
// listed, and the jobs that slurmctld does not know, which are not listed, nor is a task of their array. It returns no
// unlisted jobs if squeue lists any job that was not asked about, such as a part of a heterogeneous job: an unlisted
// job may be hidden behind it.
func readVerdicts(jobs []string, stdout string) (verdicts map[string]string, unlisted []string) {
	lines, listed := map[string]string{}, map[string]bool{}
	for line := range strings.Lines(stdout) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		id, array := fields[0], fields[len(fields)-1]
		lines[id] += id + " " + fields[1] + "\n"
		listed[id], listed[array] = true, true
	}
	verdicts = map[string]string{}
	asked := map[string]bool{}
	for _, job := range jobs {
		asked[job] = true
		if lines[job] != "" {
			verdicts[job], _ = readVerdict(job, lines[job], nil)
		} else if !listed[job] {
			unlisted = append(unlisted, job)
		}
	}
	for line := range strings.Lines(stdout) {
		if fields := strings.Fields(line); !slices.ContainsFunc(fields, func(word string) bool { return asked[word] }) {
			return verdicts, nil
		}
	}
	return verdicts, unlisted
}

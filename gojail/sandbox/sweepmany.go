// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/command"
)

// Limits of one question about many jobs. squeue then loads all jobs of the cluster, and for one job only that one.
const (
	askTogether = 8   // from so many jobs on
	askMost     = 500 // an answer is that old when the last of them is ended
)

// askAbout asks slurmctld about many jobs at once, for askController. A job without a verdict is asked about alone.
func (s *sweep) askAbout(jobs []string) {
	s.verdicts = nil
	if len(jobs) < askTogether || s.squeue == "" || !s.ask {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), squeueDeadline)
	defer cancel()
	text, err := runSqueue(ctx, s.squeue, s.config.Slurm.Conf,
		"-t", "all", "-o", "%A %T %F", "-j", strings.Join(jobs, ","), "--local")
	if err != nil || len(text) >= command.OutputMost { // its end is cut off
		return
	}
	verdicts, unlisted := readVerdicts(jobs, text)
	// squeue does not list jobs that slurmctld does not know. One of them is asked about alone: a squeue that prints
	// nothing, such as a site's own, must not end them all.
	if len(unlisted) > 0 && s.askController(unlisted[0]) == "" {
		for _, job := range unlisted {
			verdicts[job] = ""
		}
	}
	s.verdicts = verdicts
}

// readVerdicts parses squeue's lines "JOB STATE ARRAY" about many jobs. It returns the verdicts about those that are
// listed, and the jobs that slurmctld does not know: squeue lists neither them, nor a task of their array, nor any job
// of unknown origin, such as a part of a heterogeneous job.
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

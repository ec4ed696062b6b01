// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/slurm"
)

// squeueDeadline is how long the sweep waits for squeue.
const squeueDeadline = 5 * time.Second

// finished are the states of a job that will not run again (squeue(1), "JOB STATE CODES"). COMPLETING is not one of
// them, because Slurm is still ending the job's processes.
var finished = []string{
	"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL",
	"OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT",
}

// askController returns the reason to keep a job, or "" if Slurm reports that it ended. After slurmctld has failed to
// answer once, it asks no more: each question would wait for squeueDeadline.
func (s *sweep) askController(job string) string {
	if why, ok := s.verdicts[job]; ok {
		return why
	}
	if !s.ask {
		return "slurmctld did not answer for an earlier job"
	}
	if s.squeue == "" {
		return "cannot ask whether it ended: no squeue on this node"
	}
	ctx, cancel := context.WithTimeout(context.Background(), squeueDeadline)
	defer cancel()
	text, err := runSqueue(ctx, s.squeue, s.config.Slurm.Conf, "-t", "all", "-o", "%A %T", "-j", job)
	why, answered := readVerdict(job, text, err)
	s.ask = answered
	return why
}

// runSqueue returns what squeue prints without a header; conf is the directory of slurm.conf. Its callers ask for no
// column with text of users, which could contain line breaks and forge lines.
func runSqueue(ctx context.Context, squeue, conf string, args ...string) (string, error) {
	return slurm.Run(ctx, slurm.Program{
		Command: command.Command{Path: squeue, Args: append([]string{"-h"}, args...)},
		Conf:    filepath.Join(conf, "slurm.conf"),
	})
}

// isUnknownJob reports whether squeue failed because slurmctld does not know the job, or has forgotten it.
func isUnknownJob(err error) bool {
	var failed *command.ExitError
	return errors.As(err, &failed) && strings.Contains(failed.Stderr, "Invalid job id specified")
}

// isImpossibleJob reports whether squeue failed without asking slurmctld, because no job can have that number.
func isImpossibleJob(err error) bool {
	var failed *command.ExitError
	return errors.As(err, &failed) && strings.Contains(failed.Stderr, "Invalid job id: ")
}

// readVerdict parses squeue's output about one job. It returns the reason to keep the job, or "", and whether slurmctld
// answered at all. A job array has several lines; the job is kept if one of them has not ended.
func readVerdict(job, stdout string, err error) (why string, answered bool) {
	if isUnknownJob(err) {
		return "", true
	}
	if err != nil {
		return fmt.Sprintf("cannot ask whether it ended: %v", err), isImpossibleJob(err)
	}
	seen := false
	for line := range strings.Lines(stdout) {
		id, state, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || id != job {
			continue // another task of its job array
		}
		if !slices.Contains(finished, state) {
			return "it is " + state, true
		}
		seen = true
	}
	if !seen {
		return "squeue does not list it", true
	}
	return "", true
}

// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/hostlist"
)

// CheckAllocated fails unless Slurm reports that a job is the user's and has this node. If Slurm reports otherwise,
// CheckAllocated also removes the Prolog's note of the job. A node that slurmctld took for dead keeps that note,
// because Slurm runs no Epilog there for a job without steps: by then another job has the job's GPUs, and another
// user's job may have its number.
func CheckAllocated(ctx context.Context, s *state.State, c *config.Config, job, uid string) error {
	squeue, asked := node.FindSlurmCommand(c, "squeue"), time.Now()
	if squeue == "" {
		return fmt.Errorf("cannot ask Slurm whether job %s has this node: no squeue here; start a step of the job, "+
			"and connect again", job)
	}
	ctx, cancel := context.WithTimeout(ctx, squeueDeadline)
	defer cancel()
	// Without -w, for which squeue would load all nodes of the cluster.
	text, err := runSqueue(ctx, squeue, c.Slurm.Conf, "--local", "-t", "all", "-o", "%A %T %U %N", "-j", job)
	if err != nil && !isUnknownJob(err) {
		return fmt.Errorf("cannot ask Slurm whether job %s has this node: %w; try again", job, err)
	}
	if !listsNode(text, job, uid, c.Node) {
		s.ForgetAllocation(job, asked)
		return fmt.Errorf("job %s does not have this node any more", job)
	}
	return nil
}

// listsNode reports whether squeue lists a job of a user with a node. A job that is COMPLETING does not count: its node
// may already be another job's.
func listsNode(stdout, job, uid, node string) bool {
	for line := range strings.Lines(stdout) { // one for each task of a job array
		fields := strings.Fields(line)
		if len(fields) != 4 || fields[0] != job || fields[2] != uid || fields[1] == "COMPLETING" ||
			fields[1] == "STAGE_OUT" || slices.Contains(finished, fields[1]) {
			continue
		}
		if nodes, err := hostlist.Parse(fields[3]); err == nil && nodes.Contains(node) {
			return true
		}
	}
	return false
}

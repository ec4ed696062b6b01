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

// CheckAllocated requires that Slurm says of a job that it is the user's and has this node; else it removes what the
// Prolog noted of it. A node that slurmctld took for dead keeps that note, as Slurm runs no Epilog there for a job
// without steps: the job's GPUs are another job's by then, and its number may be another user's.
func CheckAllocated(ctx context.Context, s *state.State, c *config.Config, job, uid string) error {
	squeue, asked := node.FindSlurmCommand(c, "squeue"), time.Now()
	if squeue == "" {
		return fmt.Errorf("cannot ask Slurm whether job %s has this node: no squeue here; start a step of the job, "+
			"and connect again", job)
	}
	ctx, cancel := context.WithTimeout(ctx, squeueDeadline)
	defer cancel()
	// Not -w, for which squeue loads all nodes of the cluster.
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

// listsNode reports whether squeue lists a job of a user with a node. While a job is COMPLETING, the node is another
// one's already.
func listsNode(stdout, job, uid, node string) bool {
	for line := range strings.Lines(stdout) { // of a job array, all tasks
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

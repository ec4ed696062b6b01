// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"strconv"

	"github.com/gojail/gojail/internal/hostlist"
)

// Step is a Slurm step as seen by one of its tasks.
type Step struct {
	Job, ID string        // "4711", "0"
	Node    int           // index of this node among the step's nodes
	Nodes   hostlist.List // nodes of the step
	Local   int           // index of the task among those on this node
}

// ReadStep reads the step from srun's variables. Outside of srun, also in a batch script, it
// fails and names the command to use.
func ReadStep(get func(string) string) (Step, error) {
	s := Step{Job: get("SLURM_JOB_ID"), ID: get("SLURM_STEP_ID")}
	list := get("SLURM_STEP_NODELIST")
	node, nodeErr := strconv.Atoi(get("SLURM_NODEID"))
	local, localErr := strconv.Atoi(get("SLURM_LOCALID"))
	if s.Job == "" || s.ID == "" || list == "" || nodeErr != nil || localErr != nil {
		return s, fmt.Errorf("this is not a Slurm step, so the job's other nodes are not asked; start it with: srun " +
			"--ntasks-per-node=1 gojail net check")
	}
	nodes, err := hostlist.Parse(list)
	if err != nil {
		return s, fmt.Errorf("cannot parse SLURM_STEP_NODELIST: %w", err)
	}
	if node < 0 || node >= nodes.Len() {
		return s, fmt.Errorf("SLURM_NODEID is %d, but the step has %d nodes", node, nodes.Len())
	}
	s.Node, s.Nodes, s.Local = node, nodes, local
	return s, nil
}

// nodeName returns the name of a node by its index.
func (s Step) nodeName(node int) string { return s.Nodes.Name(node) }

// derivePort returns the port of the step's questions, below those that the kernel assigns
// (ip_local_port_range). Concurrent steps of a job have different ports.
func (s Step) derivePort() int {
	job, _ := strconv.Atoi(s.Job)
	id, _ := strconv.Atoi(s.ID)
	return 20000 + (job*31+id)%10000
}

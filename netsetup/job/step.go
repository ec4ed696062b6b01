// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"strconv"

	"github.com/gojail/gojail/internal/hostlist"
)

// Step is a Slurm step as one of its tasks sees it.
type Step struct {
	Job, ID string        // "4711", "0"
	Node    int           // the place of this node among the step's nodes
	Nodes   hostlist.List // of the step
	Local   int           // the task's place among those on this node
}

// StepOf reads srun's variables. Outside of srun, in a batch script too, it is an
// error that says how to start it.
func StepOf(get func(string) string) (Step, error) {
	s := Step{Job: get("SLURM_JOB_ID"), ID: get("SLURM_STEP_ID")}
	list := get("SLURM_STEP_NODELIST")
	node, err1 := strconv.Atoi(get("SLURM_NODEID"))
	local, err2 := strconv.Atoi(get("SLURM_LOCALID"))
	if s.Job == "" || s.ID == "" || list == "" || err1 != nil || err2 != nil {
		return s, fmt.Errorf("this is no step of Slurm's, so that the job's other nodes are not asked; start it with: srun --ntasks-per-node=1 gojail net check")
	}
	nodes, err := hostlist.Parse(list)
	if err != nil {
		return s, fmt.Errorf("cannot understand SLURM_STEP_NODELIST: %w", err)
	}
	if node < 0 || node >= nodes.Len() {
		return s, fmt.Errorf("SLURM_NODEID is %d, but the step has %d nodes", node, nodes.Len())
	}
	s.Node, s.Nodes, s.Local = node, nodes, local
	return s, nil
}

// name is that of a node by its place.
func (s Step) name(node int) string { return s.Nodes.Name(node) }

// port is where the step's questions go: below those that the kernel gives by
// itself (ip_local_port_range). Two steps of one job at once have two.
func (s Step) port() int {
	job, _ := strconv.Atoi(s.Job)
	id, _ := strconv.Atoi(s.ID)
	return 20000 + (job*31+id)%10000
}

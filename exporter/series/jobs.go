// SPDX-License-Identifier: Apache-2.0

package series

import (
	"strings"

	"github.com/gojail/gojail/internal/slurm"
)

// addJobs adds the numbers of jobs. States and nodes without jobs have 0, so that a first one is an increase.
func (s sink) addJobs(j *slurm.Jobs, all *slurm.Nodes) {
	var list []slurm.Node
	if all != nil {
		list = all.List
	}
	states := counts{}
	for _, state := range slurm.JobStates {
		states[pair{state}] = 0
	}
	for state, count := range j.States {
		states[pair{state}] = float64(count)
	}
	s.addCounts(jobs, states, 1)

	byState := counts{}
	for i := range list {
		for _, name := range list[i].Partitions[:min(len(list[i].Partitions), partitionsMost)] {
			if len(byState) < 2*partitionsMost {
				byState[pair{name, "pending"}], byState[pair{name, "running"}] = 0, 0
			}
		}
	}
	for key, count := range j.Partitions {
		byState[pair{key.Partition, key.Word}] = float64(count)
	}
	s.addCounts(partitionJobs, byState, 2)
	for key, count := range j.Pending {
		s.add(partitionPending, float64(count), key.Partition, key.Word)
	}

	running := counts{}
	for i := range list {
		running[pair{list[i].Name}] = float64(j.Nodes[list[i].Name])
	}
	if all == nil { // those of the jobs alone
		for name, count := range j.Nodes {
			running[pair{name}] = float64(count)
		}
	}
	s.addCounts(nodeJobs, running, 1)
}

// addDiag adds the statistics, with the RPCs of as many users.
func (s sink) addDiag(d *slurm.Diag, users int) {
	for i := range diagValues {
		v := &diagValues[i]
		if value, found := d.Values[v.key]; found {
			s.add(v.family, value*v.factor)
		}
	}
	for key, value := range d.Values {
		of, reason, found := strings.Cut(key, "/")
		switch {
		case found && of == "schedule_exit":
			s.add(schedulerExits, value, reason)
		case found && of == "bf_exit":
			s.add(backfillExits, value, reason)
		}
	}
	for _, r := range d.Types {
		s.add(rpcCalls, r.Count, r.Name)
		s.add(rpcTime, r.Microseconds*second, r.Name)
	}
	if users == 0 {
		return
	}
	for _, r := range slurm.Limit(d.Users, users) {
		s.add(rpcUserCalls, r.Count, r.Name)
		s.add(rpcUserTime, r.Microseconds*second, r.Name)
	}
}

// SPDX-License-Identifier: Apache-2.0

package series

import (
	"slices"

	"github.com/gojail/gojail/internal/metric"
	"github.com/gojail/gojail/internal/slurm"
)

// Limits of the values of labels; what is beyond them is "other".
const (
	flagsMost      = 40
	typesMost      = 50
	versionsMost   = 20
	partitionsMost = 256
)

// limiter lets a limited number of values through.
type limiter struct {
	most int
	seen map[string]bool
}

func newLimiter(most int) *limiter { return &limiter{most, map[string]bool{}} }

func (l *limiter) limit(value string) string {
	if !l.seen[value] {
		if len(l.seen) >= l.most {
			return slurm.Other
		}
		l.seen[value] = true
	}
	return value
}

// limitAll returns the values without duplicates.
func (l *limiter) limitAll(values []string) []string {
	list := make([]string, 0, len(values))
	for _, v := range values {
		list = append(list, l.limit(v))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// pair are the values of two labels.
type pair [2]string

// counts are values by their labels.
type counts map[pair]float64

func (s sink) addCounts(f metric.Family, c counts, labels int) {
	for key, value := range c {
		s.add(f, value, key[:labels]...)
	}
}

// sums are the numbers of all nodes.
type sums struct {
	states, flags, versions, gpus, gpusAllocated                        counts
	byState, cpus, cpusAllocated, partitionGPUs, partitionGPUsAllocated counts
	flagLimit, typeLimit, versionLimit, partitionLimit                  *limiter
}

func newSums() *sums {
	s := &sums{
		states: counts{}, flags: counts{}, versions: counts{}, gpus: counts{}, gpusAllocated: counts{},
		byState: counts{}, cpus: counts{}, cpusAllocated: counts{}, partitionGPUs: counts{},
		partitionGPUsAllocated: counts{},
		flagLimit:              newLimiter(flagsMost), typeLimit: newLimiter(typesMost),
		versionLimit:   newLimiter(versionsMost),
		partitionLimit: newLimiter(partitionsMost),
	}
	for _, state := range []string{"allocated", "down", "error", "idle", "mixed", "unknown"} {
		s.states[pair{state}] = 0
	}
	for _, flag := range []string{"drain", "not_responding"} {
		s.flags[pair{s.flagLimit.limit(flag)}] = 0
	}
	return s
}

// addNodes adds the nodes one by one and their sums.
func (s sink) addNodes(list []slurm.Node) {
	all := newSums()
	seen := map[string]bool{}
	for i := range list {
		if n := &list[i]; !seen[n.Name] {
			seen[n.Name] = true
			s.addNode(n, all)
		}
	}
	s.addCounts(nodes, all.states, 1)
	s.addCounts(nodesFlagged, all.flags, 1)
	s.addCounts(nodesSlurmd, all.versions, 1)
	s.addCounts(gpus, all.gpus, 1)
	s.addCounts(gpusAllocated, all.gpusAllocated, 1)
	s.addCounts(partitionNodes, all.byState, 2)
	s.addCounts(partitionCPUs, all.cpus, 1)
	s.addCounts(partitionCPUsAllocated, all.cpusAllocated, 1)
	s.addCounts(partitionGPUs, all.partitionGPUs, 2)
	s.addCounts(partitionGPUsAllocated, all.partitionGPUsAllocated, 2)
}

func (s sink) addNode(n *slurm.Node, all *sums) {
	s.add(nodeState, 1, n.Name, n.State)
	all.states[pair{n.State}]++
	for _, flag := range all.flagLimit.limitAll(n.Flags) {
		s.add(nodeFlag, 1, n.Name, flag)
		all.flags[pair{flag}]++
	}
	if n.Reason != "" {
		s.add(nodeReason, 1, n.Name, n.Reason, n.ReasonUser)
		if !n.ReasonTime.IsZero() {
			s.add(nodeReasonTime, float64(n.ReasonTime.Unix()), n.Name)
		}
	}
	if n.Version != "" {
		all.versions[pair{all.versionLimit.limit(n.Version)}]++
	}
	partitions := all.partitionLimit.limitAll(n.Partitions)
	for _, name := range partitions {
		s.add(nodePartition, 1, n.Name, name)
		all.byState[pair{name, n.State}]++
		all.cpus[pair{name}] += float64(n.CPUs)
		all.cpusAllocated[pair{name}] += float64(n.CPUsAllocated)
	}
	total, allocated := counts{}, counts{}
	for _, g := range n.GPUs {
		kind := all.typeLimit.limit(g.Type)
		total[pair{n.Name, kind}] += float64(g.Total)
		allocated[pair{n.Name, kind}] += float64(g.Allocated)
		all.gpus[pair{kind}] += float64(g.Total)
		all.gpusAllocated[pair{kind}] += float64(g.Allocated)
		for _, name := range partitions {
			all.partitionGPUs[pair{name, kind}] += float64(g.Total)
			all.partitionGPUsAllocated[pair{name, kind}] += float64(g.Allocated)
		}
	}
	s.addCounts(nodeGPUs, total, 2)
	s.addCounts(nodeGPUsAllocated, allocated, 2)
}

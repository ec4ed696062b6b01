// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"cmp"
	"slices"
)

// Diag are the statistics of slurmctld, which begin at its start, at midnight or with sdiag --reset.
type Diag struct {
	// by their names in JSON, those of an exit as "bf_exit/bf_max_time"; times in microseconds
	Values map[string]float64
	Types  []RPC // RPCs by type
	Users  []RPC // and by user
	Odd    Odd
}

// isValue reports whether a number is a value of the statistics: it is not negative, and not NO_VAL or INFINITE
// (slurm.h).
func isValue(n float64) bool {
	const noValue, infinite = 0xfffffffe, 0xffffffff // in 64 bits, both are 1 << 64 as float64
	return n >= 0 && n < 1<<63 && n != noValue && n != infinite
}

// RPC are the RPCs of one type or user.
type RPC struct {
	Name         string
	Count        float64
	Microseconds float64
}

// rpcTypesMost is the limit of the types of RPCs, of which a release of Slurm has some 150.
const rpcTypesMost = 250

// rpcsMost is the limit of the users that are read.
const rpcsMost = 1 << 16

// Limit returns the RPCs with the highest counts, and the sum of the others.
func Limit(list []RPC, most int) []RPC {
	if len(list) <= most {
		return list
	}
	list = slices.SortedFunc(slices.Values(list), func(a, b RPC) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
	few, seen := []RPC{}, map[string]int{}
	for i, r := range list {
		if i >= most {
			r.Name = Other
		}
		few = addRPC(few, seen, r)
	}
	return few
}

// addRPC adds an RPC to a list. sdiag may have two lines with the same name: users without a name are called "nobody".
func addRPC(list []RPC, seen map[string]int, r RPC) []RPC {
	r.Name = toLabel(r.Name)
	if i, known := seen[r.Name]; known {
		list[i].Count += r.Count
		list[i].Microseconds += r.Microseconds
		return list
	}
	if len(list) >= rpcsMost {
		return list
	}
	seen[r.Name] = len(list)
	return append(list, r)
}

// finish limits the lists that were read.
func (d *Diag) finish() *Diag {
	d.Types = Limit(d.Types, rpcTypesMost)
	return d
}

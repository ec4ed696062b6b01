// SPDX-License-Identifier: Apache-2.0

package gres

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/netsetup/inventory"
)

// ordered are a node's GPUs in the order of their files, which may not be that of the
// bus; those without a file come first.
func ordered(inv *inventory.Inventory) []*inventory.GPU {
	return slices.SortedStableFunc(slices.Values(inv.GPUs), func(a, b *inventory.GPU) int { return cmp.Compare(a.Minor, b.Minor) })
}

// GivenGPUs are the GPUs of a SLURM_STEP_GPUS or SLURM_JOB_GPUS, which is "0,3" with
// the places in gres.conf, or "" for none. Those without a file have no place, unless
// none has: other vendors' count in the order of the bus. Which of the two variables
// to trust, and when, is the caller's to know.
func GivenGPUs(indexes string, inv *inventory.Inventory) (given []*inventory.GPU, err error) {
	if indexes == "" {
		return nil, nil
	}
	all := ordered(inv)
	if files := slices.IndexFunc(all, func(g *inventory.GPU) bool { return g.Minor >= 0 }); files > 0 {
		all = all[files:]
	}
	for word := range strings.SplitSeq(indexes, ",") {
		i, err := strconv.Atoi(word)
		if err != nil || i < 0 || i >= len(all) {
			return nil, fmt.Errorf("the job was given the GPUs %.100q, but this node has no number %.20q; gres.conf is not that of `gojail gres`", indexes, word)
		}
		given = append(given, all[i])
	}
	return given, nil
}

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

// sortGPUs returns a node's GPUs in the order of their device files, which may differ from
// that of the bus; GPUs without a file come first.
func sortGPUs(inv *inventory.Inventory) []*inventory.GPU {
	return slices.SortedStableFunc(slices.Values(inv.GPUs),
		func(a, b *inventory.GPU) int { return cmp.Compare(a.Minor, b.Minor) })
}

// FindGivenGPUs returns the GPUs in a SLURM_STEP_GPUS or SLURM_JOB_GPUS, which is "0,3" with
// the indexes of gres.conf, or "" for none. GPUs without a file have no index, unless no GPU
// has a file: those of other vendors are counted in the order of the bus. The caller decides
// which of the two variables to trust, and when.
func FindGivenGPUs(indexes string, inv *inventory.Inventory) (given []*inventory.GPU, err error) {
	if indexes == "" {
		return nil, nil
	}
	all := sortGPUs(inv)
	if files := slices.IndexFunc(all, func(g *inventory.GPU) bool { return g.Minor >= 0 }); files > 0 {
		all = all[files:]
	}
	for word := range strings.SplitSeq(indexes, ",") {
		i, err := strconv.Atoi(word)
		if err != nil || i < 0 || i >= len(all) {
			return nil, fmt.Errorf("the job was allocated the GPUs %.100q, but this node has no GPU %.20q; compare "+
				"gres.conf with `gojail gres`", indexes, word)
		}
		given = append(given, all[i])
	}
	return given, nil
}

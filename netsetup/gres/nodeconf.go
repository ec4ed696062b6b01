// SPDX-License-Identifier: Apache-2.0

package gres

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/internal/slurm"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
)

// NodeConf is the description of a node in slurmd --conf, or in slurmctld.
type NodeConf struct {
	counts   []typedCount
	features []string
}

// typedCount is "gpu:h100:4"; typed is "gpu:h100", or "gpu".
type typedCount struct {
	typed string
	count int
}

// DescribeNode returns the description of the node's own devices, with features.
func DescribeNode(cfg *config.Config, inv *inventory.Inventory, features []string) (NodeConf, error) {
	groups, _, err := listGroups(cfg, inv)
	return NodeConf{countGroups(groups), features}, err
}

// String returns the line for slurmd --conf.
func (c NodeConf) String() string {
	var words []string
	if len(c.counts) > 0 {
		words = append(words, "Gres="+formatCounts(c.counts))
	}
	if len(c.features) > 0 {
		words = append(words, "Features="+strings.Join(c.features, ","))
	}
	return strings.Join(words, " ")
}

// countGroups returns the number of devices of each name and type, in the order of gres.conf.
func countGroups(groups []group) (list []typedCount) {
	for _, g := range groups {
		typed := g.name
		if g.kind != "" {
			typed += ":" + g.kind
		}
		i := slices.IndexFunc(list, func(c typedCount) bool { return c.typed == typed })
		if i < 0 {
			i, list = len(list), append(list, typedCount{typed: typed})
		}
		list[i].count += len(g.numbers)
	}
	return list
}

func formatCounts(counts []typedCount) string {
	var words []string
	for _, c := range counts {
		words = append(words, c.typed+":"+strconv.Itoa(c.count))
	}
	return strings.Join(words, ",")
}

// ReadNode returns slurmctld's description of a node, from its record.
func ReadNode(record *slurm.Record) (c NodeConf) {
	if features := record.Field("AvailableFeatures"); features != "" {
		c.features = strings.Split(features, ",")
	}
	for _, g := range slurm.ReadGRES(record.Field("Gres")) {
		typed := g.Name
		if g.Type != "" {
			typed += ":" + g.Type
		}
		c.counts = append(c.counts, typedCount{typed, max(g.Count, 0)})
	}
	return c
}

// Compare returns a line for each difference between the node's devices and slurmctld's description. GRES that the node
// does not have from gojail, except GPUs and "nic", belong to the site, and so do further features. If slurmctld has no
// types, Compare compares the sum.
func (c NodeConf) Compare(known NodeConf) (lines []string) {
	expected := map[string]int{}
	names := map[string]bool{"gpu": true, "nic": true}
	for _, k := range known.counts {
		expected[k.typed] += k.count
	}
	own := map[string]int{}
	for _, o := range c.counts {
		name, _, _ := strings.Cut(o.typed, ":")
		names[name] = true
		if _, untyped := expected[name]; untyped {
			o.typed = name
		}
		own[o.typed] += o.count
	}
	all := maps.Clone(own)
	maps.Copy(all, expected)
	for _, typed := range slices.Sorted(maps.Keys(all)) {
		name, _, _ := strings.Cut(typed, ":")
		switch has, knows := own[typed], expected[typed]; {
		case !names[name] || has == knows:
		case has < knows:
			lines = append(lines, fmt.Sprintf("has %d of %s, slurmctld expects %d and makes the node INVAL", has, typed,
				knows))
		default:
			lines = append(lines, fmt.Sprintf("has %d of %s, slurmctld knows of %d; the others are not used", has,
				typed, knows))
		}
	}
	for _, feature := range c.features {
		if !slices.Contains(known.features, feature) {
			lines = append(lines, "slurmctld does not know the feature "+feature)
		}
	}
	return lines
}

// SPDX-License-Identifier: Apache-2.0

package slurmconf

import (
	"maps"
	"strings"

	"github.com/gojail/gojail/internal/hostlist"
)

// FindNode returns the values of the line NodeName= of slurm.conf that describes a node, with those of the lines
// NodeName=DEFAULT before it, and keys in lower case; nil if none does.
func FindNode(lines []string, node string) (found map[string]string) {
	defaults := map[string]string{}
	for _, line := range lines {
		values := map[string]string{}
		for _, word := range strings.Fields(line) {
			key, value, _ := strings.Cut(word, "=")
			values[strings.ToLower(key)] = value
		}
		if strings.EqualFold(values["nodename"], "default") {
			maps.Copy(defaults, values)
		} else if nodes, err := hostlist.Parse(values["nodename"]); err == nil && nodes.Contains(node) {
			found = maps.Clone(defaults)
			maps.Copy(found, values)
		}
	}
	return found
}

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
		values := Words(line)
		if strings.EqualFold(values["nodename"], "default") {
			maps.Copy(defaults, values)
		} else if nodes, err := hostlist.Parse(values["nodename"]); err == nil && nodes.Contains(node) {
			found = maps.Clone(defaults)
			maps.Copy(found, values)
		}
	}
	return found
}

// Words returns the values of a line with several words KEY=VALUE, and its keys in lower case.
func Words(line string) map[string]string {
	values := map[string]string{}
	for _, word := range strings.Fields(line) {
		key, value, _ := strings.Cut(word, "=")
		values[strings.ToLower(key)] = value
	}
	return values
}

// Cut returns the key, in lower case, and the value, without quotes, of a line with one KEY=VALUE.
func Cut(line string) (key, value string, found bool) {
	key, value, found = strings.Cut(line, "=")
	return strings.ToLower(strings.TrimSpace(key)), strings.Trim(strings.TrimSpace(value), `"`), found
}

// ReadKeys returns the values of a file whose lines have one KEY=VALUE each, and none if it cannot be read. The last
// value of a key counts.
func ReadKeys(path string) map[string]string {
	values := map[string]string{}
	lines, _ := Read(path)
	for _, line := range lines {
		if key, value, found := Cut(line); found {
			values[key] = value
		}
	}
	return values
}

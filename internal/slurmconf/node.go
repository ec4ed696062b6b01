// SPDX-License-Identifier: Apache-2.0

package slurmconf

import (
	"maps"
	"regexp"
	"slices"
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
		} else if HasNode(values["nodename"], node) {
			found = maps.Clone(defaults)
			maps.Copy(found, values)
		}
	}
	return found
}

// HasNode reports whether a list such as "n[1-4],login" has a node. Slurm ignores extra commas.
func HasNode(list, node string) bool {
	return slices.ContainsFunc(hostlist.Split(list), func(part string) bool {
		nodes, err := hostlist.Parse(part)
		return err == nil && nodes.Contains(node)
	})
}

// keyValue is KEY=VALUE among others in a line, as Slurm's parser takes it: blanks may surround the "=", and a value in
// quotes may have some.
var keyValue = regexp.MustCompile(`([\w.]+)\s*[-*+/]?=\s*("[^"]*"|\S+)`)

// Words returns the values, without quotes, of a line with several KEY=VALUE, and its keys in lower case.
func Words(line string) map[string]string {
	values := map[string]string{}
	for _, word := range keyValue.FindAllStringSubmatch(line, -1) {
		values[strings.ToLower(word[1])] = strings.Trim(word[2], `"`)
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

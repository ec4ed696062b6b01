// SPDX-License-Identifier: Apache-2.0

package site

import (
	"slices"
	"strings"

	"github.com/gojail/gojail/gojail/plan"
)

// mountFlags are the options that the site file lists separately from the file system's options, in its order.
var mountFlags = []string{"ro", "nosuid", "nodev", "noexec"}

// formatMount returns the line of the site file for a sandbox's own mount.
func formatMount(m plan.OwnMount) string {
	how := m.How
	if m.Net {
		how += ",net"
	}
	var flags, options []string
	for _, flag := range mountFlags {
		if slices.Contains(m.Options, flag) {
			flags = append(flags, flag)
		}
	}
	for _, option := range m.Options {
		if !slices.Contains(mountFlags, option) && option != "bind" {
			options = append(options, option)
		}
	}
	return strings.Join([]string{"mount", how, m.Type, joinWords(flags), joinWords(options), m.Destination}, " ")
}

// joinWords joins a list with commas, or returns "-" for an empty list.
func joinWords(list []string) string {
	if len(list) == 0 {
		return "-"
	}
	return strings.Join(list, ",")
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
)

// sharedRunDirs are directories of /run to which users may write on nodes, whether or not the jail's tmpfiles.d names
// them. On nodes, screen(1) is often set-group-ID, and its directory is closed to others. Set-ID programs have no
// effect in a jail, and without them screen requires a directory that is open to all.
var sharedRunDirs = []node.RunEntry{{Path: "/run/lock"}, {Path: "/run/screen"}}

// addRunEntries adds to the view the entries that programs of users find in /run after a boot, except those on or below
// another part of the view.
func addRunEntries(v *View, facts *node.HostFacts) {
	var taken []string
	for _, m := range v.Spec.Mounts {
		if m.Destination != "/run" {
			taken = append(taken, m.Destination)
		}
	}
	for _, l := range v.Links {
		taken = append(taken, l.Path)
	}
	overlaps := func(path string, with []string) bool {
		return slices.ContainsFunc(with, func(other string) bool {
			return config.Under(path, other) ||
				config.Under(other, path)
		})
	}
	for _, e := range slices.Concat(sharedRunDirs, facts.RunEntries) {
		switch {
		case overlaps(e.Path, taken) || slices.Contains(v.SharedDirs, e.Path):
		case e.Link == "":
			v.SharedDirs = append(v.SharedDirs, e.Path)
		case !overlaps(e.Path, v.SharedDirs):
			v.Links = append(v.Links, Link{e.Path, e.Link})
			taken = append(taken, e.Path)
		}
	}
}

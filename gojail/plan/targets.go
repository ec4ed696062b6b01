// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path/filepath"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/gojail/config"
)

// Target is a mount point in a jail.
type Target struct {
	Path string
	Dir  bool // a directory; otherwise a file
}

func (t Target) String() string {
	if t.Dir {
		return "directory " + t.Path
	}
	return "file " + t.Path
}

// Targets returns the mount targets that must exist on the jail's own storage: those that no mount of the
// sandbox contains.
func Targets(c *config.Config, j *config.Jail, v *View, stat Stat) []Target {
	var targets []Target
	mounts := append(append([]specs.Mount{}, v.Spec.Mounts...), JobMounts(c, nil, j, "", false, stat)...)
	for i, m := range mounts {
		again := slices.ContainsFunc(mounts[:i], func(e specs.Mount) bool { return e.Destination == m.Destination })
		if !again && !Inside(mounts[:i], filepath.Dir(m.Destination)) {
			targets = append(targets, Target{m.Destination, isDirectoryTarget(m, stat)})
		}
	}
	return targets
}

// isDirectoryTarget reports whether the source of a mount is a directory. A source that does not exist yet, such as a
// node-local directory, counts as one.
func isDirectoryTarget(m specs.Mount, stat Stat) bool {
	if m.Type != "bind" {
		return true
	}
	st, err := stat(m.Source)
	return err != nil || st.IsDir()
}

// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"os"
	"path/filepath"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/gojail/config"
)

// Target is a place in a jail that something is mounted on.
type Target struct {
	Path string
	Dir  bool // else a file
}

func (t Target) String() string {
	if t.Dir {
		return "directory " + t.Path
	}
	return "file " + t.Path
}

// Targets lists the mount targets that must be on the jail's own storage: those
// that do not lie on something that the sandbox itself mounts.
func Targets(c *config.Config, j *config.Jail, v *View) []Target {
	var targets []Target
	mounts := append(append([]specs.Mount{}, v.Spec.Mounts...), JobMounts(c, j, "", false)...)
	for i, m := range mounts {
		again := slices.ContainsFunc(mounts[:i], func(e specs.Mount) bool { return e.Destination == m.Destination })
		if !again && !Inside(mounts[:i], filepath.Dir(m.Destination)) {
			targets = append(targets, Target{m.Destination, isDirectoryTarget(m)})
		}
	}
	return targets
}

// isDirectoryTarget tells what the source of a mount is. What is not there yet, such
// as a node-local directory, will be a directory.
func isDirectoryTarget(m specs.Mount) bool {
	if m.Type != "bind" {
		return true
	}
	st, err := os.Stat(m.Source)
	return err != nil || st.IsDir()
}

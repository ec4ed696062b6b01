// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/oneline"
)

// Launches are the counters of a jail's steps that slurmstepd keeps (struct gojail_launches in include/gojail.h).
type Launches struct {
	Version uint64
	Entered uint64
	Failed  [contract.LaunchReasons]uint64
	Took    [contract.LaunchBounds + 1]uint64 // steps that entered, by contract.TookBounds; the last has no bound
	TookUs  uint64                            // sum of all of them, in microseconds
}

// Launches returns the counters by jail. Steps that failed before their jail was known are under "".
func (s *State) Launches() (map[string]Launches, error) {
	dir := filepath.Join(s.path, contract.LaunchesDir)
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", dir, oneline.Cause(err))
	}
	all := map[string]Launches{}
	for _, e := range entries {
		var l Launches
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || len(text) != binary.Size(l) || binary.Read(bytes.NewReader(text), binary.NativeEndian,
			&l) != nil || l.Version != contract.Version {
			continue // another version wrote it, and the next step replaces it
		}
		jail := e.Name()
		if jail == contract.NoJailFile {
			jail = ""
		}
		all[jail] = l
	}
	return all, nil
}

// CountsLaunches reports whether slurmstepd counts the steps of this node. It does so only if the state directory is on
// tmpfs (spank/plugin/launches.c).
func (s *State) CountsLaunches() bool {
	var fs unix.Statfs_t
	return unix.Statfs(s.path, &fs) == nil && fs.Type == unix.TMPFS_MAGIC
}

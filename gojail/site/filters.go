// SPDX-License-Identifier: Apache-2.0

package site

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/oneline"
)

// writeFilters compiles the seccomp programs of all jails and returns their file names, relative to the
// state directory. The names depend on the content: a step that has read an earlier site file still finds
// its program. The files are small, few, and deleted at the next boot.
func writeFilters(c *config.Config, stateDir string) (map[string]string, error) {
	dir := filepath.Join(stateDir, node.FilterDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot create %s: %w; is the state directory full or read-only?", dir,
			oneline.Cause(err))
	}
	names := map[string]string{}
	for _, name := range c.JailNames() {
		program, err := node.CompileFilter(c.Jails[name])
		if err != nil {
			return nil, err
		}
		if program == nil {
			continue
		}
		sum := sha256.Sum256(program)
		names[name] = filepath.Join(node.FilterDir, fmt.Sprintf("%x", sum[:8]))
		path := filepath.Join(stateDir, names[name])
		if st, err := os.Stat(path); err == nil && st.Size() == int64(len(program)) {
			continue
		}
		if err := state.ReplaceFile(path, string(program)); err != nil {
			return nil, err
		}
	}
	return names, nil
}

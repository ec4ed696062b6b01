// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/trusted"
)

// Load reads and checks the configuration at path; node is the value of %n.
//
// The file and every directory above it must belong to root and must not be writable by others (a sticky directory such
// as /tmp may be). Every error is one line with the file, the key and, if there is one, the line.
func Load(path, node string) (*config.Config, error) {
	data, id, err := trusted.ReadFile(path, "the configuration")
	if err != nil {
		return nil, err
	}
	c, err := config.ParseConfigOn(string(data), node, readSpoolDir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c.Path, c.Identity = path, id
	findSlurmConfCopy(&c.Slurm)
	return c, nil
}

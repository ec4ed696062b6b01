// SPDX-License-Identifier: Apache-2.0

package state

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/gojail/contract"
)

// Cgroups returns the paths of a job's cgroups as its first step noted them: one with v2, one for each controller with
// v1, none where Slurm uses none.
func (s *State) Cgroups(job string) []string {
	text, err := os.ReadFile(filepath.Join(s.JobDir(job), contract.CgroupsFile))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

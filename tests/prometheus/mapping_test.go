// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mappings has the job mapping files of dcgm-exporter, one directory for each node.
const mappings = "/run/dcgm"

// checkMapping requires a file for each GPU and each instance of MIG that the job has, with the job in it: named by NVML's index of
// the GPU, and the number of the instance (internal/pkg/transformation/hpc.go of dcgm-exporter).
func (s *site) checkMapping(t *testing.T, job string) {
	t.Helper()
	have := map[string]string{}
	paths, err := filepath.Glob(s.Path(mappings + "/*/*"))
	require.NoError(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		have[filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path)] = string(text)
	}
	assert.Equal(t, map[string]string{"n1/0": job + "\n", "n1/2.1": job + "\n", "n2/1": job + "\n", "n2/2.2": job + "\n"}, have)
}

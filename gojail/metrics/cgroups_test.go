// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
)

func TestReadUsage(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"v2/memory.current": "4096\n", "v2/memory.peak": "8192\n", "v2/cpu.stat": "usage_usec_x 9\nusage_usec 2500000\nuser_usec 1\n",
		"memory/memory.usage_in_bytes": "1024\n", "memory/memory.max_usage_in_bytes": "2048\n", "cpuacct/cpuacct.usage": "1500000000\n",
		"broken/memory.current": "many\n", "broken/cpu.stat": "", "old/memory.current": "1\n",
		"memory/slurm_n1/uid_5/job_7/memory.usage_in_bytes": "3\n", "cpu,cpuacct/slurm_n1/uid_5/job_7/cpuacct.usage": "2\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		nstest.WriteFile(t, filepath.Join(dir, name), text)
	}
	in := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		return paths
	}
	assert.Equal(t, usage{new(4096.0), new(8192.0), new(2.5)}, readUsage(in("v2")))
	assert.Equal(t, usage{new(1024.0), new(2048.0), new(1.5)}, readUsage(in("freezer", "cpuacct", "memory")))
	assert.Equal(t, usage{new(3.0), nil, new(2e-9)}, readUsage(in("devices/slurm_n1/uid_5/job_7")), "controllers that were joined later")
	assert.Equal(t, usage{memory: new(1.0)}, readUsage(in("old")), "before Linux 5.19")
	assert.Equal(t, usage{}, readUsage(in("broken", "gone")))
	assert.Equal(t, usage{}, readUsage(nil))
}

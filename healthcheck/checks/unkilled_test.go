// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
)

func TestFindUnkilled(t *testing.T) {
	nstest.NeedRoot(t)
	h := testHost(t)
	assert.Equal(t, "a list of processes that cannot be read", FindUnkilled(h), "of an empty /proc nothing is known")
	stat(t, h, "1", "systemd", "S", 0)
	put(t, h.Roots.Proc+"/2/stat", "2 (kworker) D 1 1 1 0 -1 2097152 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0\n") // PF_KTHREAD
	stat(t, h, "40", "slurmstepd", "S", 0)                                                                 // of the scope of all steps
	put(t, h.Roots.Proc+"/40/cmdline", "/usr/sbin/slurmstepd\x00infinity\x00")
	put(t, h.Roots.Proc+"/40/cgroup", "0::/system.slice/slurmstepd.scope/system\n")
	stat(t, h, "41", "slurmstepd", "S", 0) // a user's program of that name
	put(t, h.Roots.Proc+"/41/cmdline", "slurmstepd: [17.0]\x00")
	require.NoError(t, os.Chown(h.Roots.Proc+"/41", 65533, 65533))
	assert.Empty(t, FindUnkilled(h))
	for want, files := range map[string]map[string]string{
		"process 50 (cat), which waits in the kernel": nil,
		"process 50 (cat), which belongs to a job":    {"cgroup": "0::/system.slice/slurmstepd.scope/job_17/step_0/user/task_0\n"},
		"process 50 (slurmstepd), which is of a step": {"cmdline": "slurmstepd: [17.batch]\x00"},
	} {
		name, state := "cat", "D"
		if files != nil {
			state = "S"
		}
		if files["cmdline"] != "" {
			name = "slurmstepd"
		}
		stat(t, h, "50", name, state, 0)
		for file, text := range files {
			put(t, h.Roots.Proc+"/50/"+file, text)
		}
		assert.Equal(t, want, FindUnkilled(h))
		require.NoError(t, os.RemoveAll(h.Roots.Proc+"/50"))
	}
}

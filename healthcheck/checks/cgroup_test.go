// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
)

const sluid = "s43XM7YPKHYZ00"

// TestCgroups has each way in which Slurm names the cgroup of a job: by number up to 25.11 and with
// CgroupJobIdPaths=yes, by SLUID in 26.05, below a scope of the node's where several slurmd may run, and v1.
func TestCgroups(t *testing.T) {
	for group, name := range map[string]string{
		"system.slice/slurmstepd.scope/job_17":      "17",
		"system.slice/n1_slurmstepd.scope/job_17":   "17",
		"system.slice/slurmstepd.scope/" + sluid:    sluid,
		"system.slice/n1_slurmstepd.scope/" + sluid: sluid,
		"freezer/slurm_n1/uid_1000/job_17":          "17",
	} {
		t.Run(group, func(t *testing.T) {
			h, s := testHost(t), config.DefaultSettings()
			expect(t, once(h, cgroups, s), check.NotApplicable, "")
			root := h.Roots.Sys + "/fs/cgroup/"
			put(t, root+group+"/step_0/user/cgroup.procs", "4711\n")
			stat(t, h, "50", "slurmstepd", "S", 0)
			put(t, h.Roots.Proc+"/50/cmdline", "slurmstepd: [17.0]\x00")
			put(t, h.Roots.Proc+"/50/cgroup", "1:name=systemd:/system.slice/slurmd.service\n0::/"+group+"/step_0/slurm\n")
			f := again(h, cgroups, s, check.Finding{})
			expect(t, f, check.OK, "")
			expect(t, again(h, cgroups, s, f), check.OK, "")
			require.NoError(t, os.RemoveAll(h.Roots.Proc+"/50"))
			f = again(h, cgroups, s, f)
			expect(t, f, check.OK, "") // it may have ended just now
			f = again(h, cgroups, s, f)
			expect(t, f, check.Warn, "processes of ended jobs remain")
			assert.Equal(t, "job "+name, f.Detail)
		})
	}
}

// TestCgroupsOfNoJob: what is not a job's, or is empty, is nothing that a job left.
func TestCgroupsOfNoJob(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	scope := h.Roots.Sys + "/fs/cgroup/system.slice/slurmstepd.scope"
	for _, name := range []string{"system", "job_x", "job_", "s43XM7YPKHYZ0", "s43xm7ypkhyz00", "S43XM7YPKHYZ00"} {
		put(t, scope+"/"+name+"/cgroup.procs", "4711\n")
	}
	put(t, scope+"/job_18/cgroup.procs", "\n")
	f := again(h, cgroups, s, check.Finding{})
	expect(t, again(h, cgroups, s, f), check.OK, "")
}

// TestCgroupsOfAnotherUsersProcess: only root's slurmstepd says which jobs run.
func TestCgroupsOfAnotherUsersProcess(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	put(t, h.Roots.Sys+"/fs/cgroup/system.slice/slurmstepd.scope/"+sluid+"/step_0/cgroup.procs", "50\n")
	stat(t, h, "50", "slurmstepd", "S", 0)
	put(t, h.Roots.Proc+"/50/cmdline", "slurmstepd: [17.0]\x00")
	put(t, h.Roots.Proc+"/50/cgroup", "0::/system.slice/slurmstepd.scope/"+sluid+"/step_0/user/task_0\n")
	require.NoError(t, os.Chown(h.Roots.Proc+"/50", 65533, 65533))
	f := again(h, cgroups, s, check.Finding{})
	expect(t, again(h, cgroups, s, f), check.Warn, "processes of ended jobs remain")
}

func TestControllersThatAreNotDelegated(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	root := h.Roots.Sys + "/fs/cgroup"
	put(t, root+"/cgroup.controllers", "cpuset cpu io memory pids\n")
	put(t, root+"/system.slice/slurmstepd.scope/cgroup.controllers", "cpuset cpu memory\n")
	expect(t, once(h, cgroups, s), check.OK, "")
	put(t, root+"/system.slice/slurmstepd.scope/cgroup.controllers", "memory\n")
	expect(t, once(h, cgroups, s), check.Warn, "the cgroup controller cpu is not delegated to Slurm; the cgroup controller cpuset is not delegated to Slurm")
}

func TestIsInStep(t *testing.T) {
	for text, want := range map[string]bool{
		"0::/system.slice/slurmstepd.scope/job_17/step_0/user/task_0\n":                         true,
		"0::/system.slice/n1_slurmstepd.scope/job_17/step_extern/user/task_special\n":           true,
		"0::/system.slice/slurmstepd.scope/" + sluid + "/step_batch/user/task_0\n":              true,
		"5:devices:/slurm/uid_1000/job_7/step_0/task_0\n1:name=systemd:/system.slice/x\n":       true,
		"5:devices:/slurm_n1/uid_1000/job_7/step_0/task_0\n":                                    true,
		"0::/system.slice/ssh.service\n":                                                        false,
		"0::/system.slice/slurmstepd.scope/system\n":                                            false,
		"0::/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/job_1/step_0\n":      false,
		"0::/user.slice/user-1000.slice/user@1000.service/slurm/uid_1000/job_1/step_0/task_0\n": false,
		"": false,
	} {
		assert.Equal(t, want, isInStep(text), text)
	}
}

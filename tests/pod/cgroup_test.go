// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// jobCgroup is the name of a job's cgroup, which 26.05 makes of its SLUID.
const jobCgroup = "(job_[0-9]+|s[0-9A-Z]{13})"

// TestCgroupBelowThePods: jobs and gojail's own processes stay in the pod's part of the cgroups, in a cgroup namespace of
// the container's, and in the host's, which containerd gives to privileged containers.
func TestCgroupBelowThePods(t *testing.T) {
	c := sharedCluster(t)
	for _, namespace := range []string{"private", "host"} {
		t.Run(namespace, func(t *testing.T) {
			c.startNode(t, node{cgroupns: namespace})
			requireOutput(t, "debian", c.srun("cat", marker))
			r := c.run("", "sh", "-c", "cd /sys/fs/cgroup && find . -mindepth 1 -type d")
			require.Zero(t, r.Code, r)
			own := 0
			for _, dir := range strings.Fields(r.Stdout) {
				if strings.Contains(dir, "/gojail") {
					assert.Regexp(t, "^./kubepods/n1/([^/]+/)?gojail$", dir)
					own++
				}
				assert.Regexp(t, "^./(host|kubepods)", dir)
			}
			assert.Equal(t, 1, own, "gojail's own cgroup: %s", r)
			path := c.srun("sh", "-c", "sed -n 's/^0:://p' /proc/self/cgroup")
			want := "^/system.slice/n1_slurmstepd.scope/" + jobCgroup + "/step_0/user/task_0$"
			if namespace == "host" {
				want = "^/kubepods/n1/system.slice/n1_slurmstepd.scope/" + jobCgroup + "/step_0/user/task_0$"
			}
			assert.Regexp(t, want, strings.TrimSpace(path.Stdout), path)
			c.requireNothingLeft(t)
		})
	}
}

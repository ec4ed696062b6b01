// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/cluster"
)

// TestDeviceFilterOfCgroupV2: what a job has not been given, Slurm's BPF program
// refuses with EPERM, root's jobs as well. The devices are /dev/zero and
// /dev/full under other names.
func TestDeviceFilterOfCgroupV2(t *testing.T) {
	cards(t)
	run(t, "mknod -m 666 /dev/gpu_0 c 1 5; mknod -m 666 /dev/gpu_1 c 1 7")
	t.Cleanup(func() { run(t, "rm /dev/gpu_0 /dev/gpu_1") })
	c := cluster.Start(t, cluster.Options{
		Files: map[string]string{
			"/etc/slurm/cgroup.conf": "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\nConstrainDevices=yes\n",
			"/etc/slurm/gres.conf":   "Name=gpu File=/dev/gpu_[0-1]\n",
		},
		SlurmConf: map[string]string{
			"ProctrackType": "proctrack/cgroup", "TaskPlugin": "task/cgroup", "GresTypes": "gpu",
			"NodeName": "n1 NodeAddr=" + cluster.Address + " Port=6818 CPUs=2 Gres=gpu:2 State=UNKNOWN\n" +
				"NodeName=n2 NodeAddr=" + cluster.Address + " Port=6819 CPUs=2 Gres=gpu:2 State=UNKNOWN",
		},
	})
	const open = "for d in gpu_0 gpu_1 null; do head -c0 /dev/$d && echo $d; done; exit 0"
	for _, user := range []string{cluster.Alice, "root"} { // the file's mode would let both
		for gres, want := range map[string]string{"": "null", "gpu:1": "gpu_0 null", "gpu:2": "gpu_0 gpu_1 null"} {
			args := []string{"srun", "-wn1", "sh", "-c", open}
			if gres != "" {
				args = append([]string{"srun", "--gres=" + gres}, args[1:]...)
			}
			r := c.Run(user, args...)
			require.Zero(t, r.Code, r)
			assert.Equal(t, want, strings.Join(strings.Fields(r.Stdout), " "), "%s with gres %q: %s", user, gres, r)
			refused := 3 - len(strings.Fields(want))
			assert.Equal(t, refused, strings.Count(r.Stderr, "Operation not permitted"), "%s with gres %q: %s", user, gres, r)
		}
	}
}

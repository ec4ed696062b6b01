// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/gres"
	"github.com/gojail/gojail/tests/harness"
)

// writeGRES creates VFs and their files, and returns the two nodes' lines for gres.conf and slurm.conf. The
// second rail's name has no plugin in Slurm.
func writeGRES(t *testing.T) (gresConf, nodes string) {
	t.Helper()
	p := newProvisioning(t)
	cfg := newConfig(t, findCards(t), func(*config.Policy) {})
	require.NoError(t, p.applyConfig(cfg))
	cfg.Rails[1].GRES = "vf"
	devices, err := gres.ListDevices(cfg, p.readInventory())
	require.NoError(t, err)
	require.NoError(t, gres.MakeFiles("/dev", devices))
	t.Cleanup(func() { os.RemoveAll("/dev/" + gres.Directory) })
	for i, node := range []string{"n1", "n2"} {
		conf, slurm, err := gres.FormatLines(cfg, p.readInventory(), node)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(slurm), "\n")
		require.Equal(t, "GresTypes=nic,vf", lines[0])
		gresConf += conf
		nodes += fmt.Sprintf("%s NodeAddr=%s Port=%d CPUs=2 State=UNKNOWN\n", lines[1], harness.Address, 6818+i)
	}
	return gresConf, strings.TrimPrefix(strings.TrimSpace(nodes), "NodeName=")
}

// TestSlurmCountsVFs: a job gets VFs by number. Their files answer with ENXIO in
// its steps, those of others with EPERM, which no user can forge.
func TestSlurmCountsVFs(t *testing.T) {
	gresConf, nodes := writeGRES(t)
	c := harness.Start(t, harness.Options{
		Files: map[string]string{
			"/etc/slurm/cgroup.conf": "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\nConstrainDevices=yes\n",
			"/etc/slurm/gres.conf":   gresConf,
		},
		SlurmConf: map[string]string{"ProctrackType": "proctrack/cgroup", "TaskPlugin": "task/cgroup", "GresTypes": "nic,vf", "NodeName": nodes},
	})
	const look = `echo "nics=$SLURM_STEP_NICS"; for f in /dev/gojail/*; do head -c0 $f 2>&1 | sed -n "s,^head: cannot open '/dev/gojail/\(.*\)' for reading: No such device.*,\1,p"; done`
	for ask, want := range map[string]string{
		"nic:rail0:1": "nics=mlx4_0 nic_0",
		"nic:rail0:2": "nics=mlx4_0,mlx4_1 nic_0 nic_1",
		"vf:1":        "nics= vf_0",
		"nic:1,vf:2":  "nics=mlx4_0 nic_0 vf_0 vf_1",
	} {
		if harness.Release() == "22.05" { // its device cgroup knows the GRES of plugins only
			want = strings.Fields(want)[0] + strings.Repeat(" nic_0", min(1, strings.Count(want, "nic_0"))) +
				strings.Repeat(" nic_1", strings.Count(want, "nic_1")) + " vf_0 vf_1"
		}
		r := c.Run("root", "srun", "-wn1", "--gres="+ask, "sh", "-c", look)
		require.Zero(t, r.Code, r)
		assert.Equal(t, want, strings.Join(strings.Fields(r.Stdout), " "), "%s: %s", ask, r)
	}
	assert.True(t, c.WaitIdle(), c.Drained())
}

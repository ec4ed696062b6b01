// SPDX-License-Identifier: Apache-2.0

package network

import (
	"bytes"
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/netsetup/job"
	"github.com/gojail/gojail/netsetup/netns"
)

// TestNetInsideAJob is in a namespace as a job has one. The table itself, on all
// nodes of a step, is package job's to test.
func TestNetInsideAJob(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root, to make a network namespace")
	}
	ns, err := netns.New()
	require.NoError(t, err)
	defer unix.Close(ns)
	t.Setenv("GOJAIL_NET_RAILS", "rail0,left-rail")
	t.Setenv("GOJAIL_NET_RAIL0_IFNAME", "net1")
	t.Setenv("GOJAIL_NET_RAIL0_ADDRESS", "10.1.0.5")
	t.Setenv("GOJAIL_NET_LEFT_RAIL_IFNAME", "net2")
	t.Setenv("SLURM_JOB_ID", "17")
	t.Setenv("SLURM_STEP_ID", "")
	require.NoError(t, netns.RunInside(ns, func() error {
		line := "ip link add net1 type veth peer name ctl0; ip addr add 10.1.0.5/24 dev net1; ip addr add 169.254.2.2/32 dev ctl0; ip link set net1 up; ip link set ctl0 up"
		out, err := exec.Command("sh", "-c", line).CombinedOutput()
		assert.Empty(t, string(out))
		if err != nil {
			return err
		}
		var networks []jobNetwork
		require.Eventually(t, func() bool { // the kernel tells of a carrier later
			err = netns.RunInside(ns, func() (err error) { networks, err = readJobView(); return err })
			return err != nil || networks[0].Control.State == job.Up && networks[0].Rails[0].State == job.Up
		}, time.Minute, time.Millisecond)
		if err != nil {
			return err
		}
		var table bytes.Buffer
		assert.NoError(t, printNetworks(&table, networks))
		assert.Equal(t, `
JOB  RAIL       INTERFACE  ADDRESS         GATEWAY  RDMA  PCI  STATE
17   control    ctl0       169.254.2.2/32  -        -     -    up
17   rail0      net1       10.1.0.5/24     -        -     -    up
17   left-rail  net2       -               -        -     -    missing
`, "\n"+table.String())
		var stdout, stderr bytes.Buffer
		assert.Equal(t, cmdline.SilentExit(1), checkRails(context.Background(), "n1", false, &stdout, &stderr))
		assert.Equal(t, "NODE  rail0       left-rail\nn1    ok          missing\n", stdout.String())
		assert.Equal(t, `n1: this is not a Slurm step, so the job's other nodes are not asked; start it with: srun --ntasks-per-node=1 gojail net check
n1: left-rail: net2 is missing
`, stderr.String())
		return nil
	}))
}

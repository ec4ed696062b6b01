// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/job"
	"github.com/gojail/gojail/netsetup/netns"
)

func TestNetCommandsOutsideOfAJob(t *testing.T) {
	s := newNetSite(t, networkText)
	out, _, err := s.gojail("net", "show")
	require.NoError(t, err)
	assert.Equal(t, "No job network: the job was started without --jail-net, or outside a jail.\n", out)
	out, _, err = s.gojail("net", "show", "--json")
	require.NoError(t, err)
	assert.JSONEq(t, `{"networks": []}`, out)
	_, _, err = s.gojail("net", "show", "17")
	assert.ErrorContains(t, err, "job 17 has no network on this node; to list the jobs that have one, run: gojail vf ls")
	_, _, err = s.gojail("net", "check")
	assert.ErrorContains(t, err, "the job has no rails; start it with --jail-net=LABEL")
	_, _, err = s.gojail("net", "check", "--timeout=0s")
	assert.ErrorContains(t, err, "--timeout=0s: must be positive, such as 10s")
}

func TestNetShowOfAJob(t *testing.T) {
	s := newNetSite(t, networkText)
	network := attach.Network{
		Job: "17", Env: []string{},
		Control: &attach.ControlNet{Name: "ctl0", Addresses: []netip.Addr{netip.MustParseAddr("10.0.8.1")}},
		Rails: []attach.RailNet{
			{Rail: "rail0", Name: "net1", PCI: left.VFAddress(0), Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.5/24")},
				Gateways: []netip.Addr{netip.MustParseAddr("10.1.0.1")}, RDMA: "mlx5_2"},
			{Rail: "ib0", Name: "net2", PCI: left.VFAddress(1), RDMA: "mlx5_3"},
		},
	}
	text, err := json.Marshal(map[string]any{"boot": "1", "job": "17", "netns": 1, "network": network})
	require.NoError(t, err)
	dir := filepath.Join(s.dir, "state-n1", "net", "jobs")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "17.json"), text, 0o600))
	out, _, err := s.gojail("net", "show", "17")
	require.NoError(t, err)
	assert.Equal(t, `
JOB  RAIL     INTERFACE  ADDRESS      GATEWAY   RDMA    PCI           STATE
17   control  ctl0       10.0.8.1/32  -         -       -             attached
17   rail0    net1       10.1.0.5/24  10.1.0.1  mlx5_2  0000:86:01.0  attached
17   ib0      net2       -            -         mlx5_3  0000:86:01.1  attached
`, "\n"+out)
	out, _, err = s.gojail("net", "show", "17", "--json")
	require.NoError(t, err)
	assert.Contains(t, out, `"gateways": [
            "10.1.0.1"
          ],`)
	assert.NotContains(t, out, "null")
}

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
		assert.Equal(t, silentExit(1), checkRails(context.Background(), "n1", false, &stdout, &stderr))
		assert.Equal(t, "NODE  rail0       left-rail\nn1    ok          missing\n", stdout.String())
		assert.Equal(t, `n1: this is not a Slurm step, so the job's other nodes are not asked; start it with: srun --ntasks-per-node=1 gojail net check
n1: left-rail: net2 is missing
`, stderr.String())
		return nil
	}))
}

func TestCommandsBelowVFAndNetHaveHelp(t *testing.T) {
	for _, above := range []string{"vf", "net"} {
		parent, _, err := newCommand(&localNode{}).Find([]string{above})
		require.NoError(t, err)
		for _, c := range parent.Commands() {
			assert.NotEmpty(t, c.Short, c.Name())
			assert.Contains(t, c.Example, "gojail "+above+" "+c.Name())
			for line := range strings.Lines(c.Long) {
				assert.LessOrEqual(t, len(line), 81, line)
			}
		}
	}
	s := newNetSite(t, networkText)
	_, _, err := s.gojail("vf", "frob")
	assert.EqualError(t, err, `unknown command "frob" for "gojail vf"`)
	out, _, err := s.gojail("net")
	require.NoError(t, err)
	assert.Contains(t, out, "gojail net [command]")
}

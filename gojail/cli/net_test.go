// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/attach"
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

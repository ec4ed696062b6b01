// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/link"
)

// newJobSpace returns a job's namespace in its state after a release, with lo up.
func newJobSpace(t testing.TB) *link.Namespace {
	t.Helper()
	n := newSpace(t)
	require.NoError(t, n.SetUp(1))
	return n
}

func pfIndex(t testing.TB, n *node, i int) int {
	l, err := n.host.FindByName(fmt.Sprintf("pf%d", i))
	require.NoError(t, err)
	return l.Index
}

func TestAttachAndRelease(t *testing.T) {
	for _, rails := range []int{1, 2, 8} {
		t.Run(fmt.Sprint(rails), func(t *testing.T) {
			n := newNode(t, setup{cards: rails, control: true, directory: true,
				probe:  "timeout = \"30ms\"",
				policy: "trust = true\nspoof_check = true\nmtu = 1400\nmax_rate = 100\nvlan = 7"})
			job := newJobSpace(t)
			runShell(t, n.host, "sysctl -qw net.ipv4.ping_group_range='0 4711'")
			before, empty := n.takeSnapshot(), readSpace(t, job)
			got, err := Attach(t.Context(), n.site, Job{ID: "4711", Netns: job.FD()})
			require.NoError(t, err)
			require.Len(t, got.Rails, rails)
			for i, r := range got.Rails {
				l, err := job.FindByName(r.Name)
				require.NoError(t, err)
				assert.True(t, l.Running)
				assert.Equal(t, 1400, l.MTU)
				address := r.Addresses[0].Addr().String()
				assert.Contains(t, runShell(t, job, "ip rule"), fmt.Sprintf("from %s lookup %d", address, 101+i))
				assert.Equal(t, address, connect(t, job, address, n.wire, fmt.Sprintf("10.%d.255.254", i+1)))
				k, err := n.site.hardware.readVF(n.host, pfIndex(t, n, i), r.VF)
				require.NoError(t, err)
				assert.Equal(t, link.VLAN{ID: 7, Proto: link.Dot1Q}, *k.VLAN)
				assert.True(t, *k.Trust)
			}
			assert.Contains(t, runShell(t, job, "ip route show default"), "dev ctl0")
			assert.Contains(t, runShell(t, job, "sysctl net.ipv4.ping_group_range"), "= 0\t4711")
			assert.Equal(t, got.Control.Addresses[0].String(), connect(t, job, "", n.host, "192.0.2.1"))
			assert.Equal(t, got.Control.Addresses[0].String(), connect(t, job, "", n.wire, "192.0.2.254"))
			again, err := Attach(t.Context(), n.site, Job{ID: "4711", Netns: job.FD()})
			require.NoError(t, err)
			assert.Equal(t, got.Env, again.Env)
			shown, err := ReadNetwork(n.site.State, "4711")
			require.NoError(t, err)
			assert.Equal(t, got.Env, shown.Env)
			t.Log(got.Env)
			for range 2 {
				require.NoError(t, Release(t.Context(), n.site, "4711"))
				requireSame(t, before, n.takeSnapshot())
				requireSame(t, empty, readSpace(t, job))
			}
		})
	}
}

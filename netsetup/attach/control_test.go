// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/pool"
)

// TestConflictOfAControlAddress: a machine of the node's network has it already.
func TestConflictOfAControlAddress(t *testing.T) {
	for _, probe := range []string{asking, "conflict = false\ngateway = false"} {
		n := newNode(t, setup{directory: true, control: true, probe: probe})
		job := jobSpace(t)
		got, err := n.attach(job)
		require.NoError(t, err)
		first := got.Control.Addresses[0]
		n.release()
		sh(t, n.wire, "ip addr add "+first.String()+"/32 dev far0")

		got, err = n.attach(job)
		require.NoError(t, err)
		if probe != asking {
			assert.Equal(t, first, got.Control.Addresses[0], "nobody asked")
			n.release()
			continue
		}
		next := got.Control.Addresses[0]
		assert.NotEqual(t, first, next)
		assert.Equal(t, next.String(), talk(t, job, next.String(), n.wire, "192.0.2.254"))
		n.release()
		assert.Contains(t, n.snapshot(), "quarantine")
		assert.NotContains(t, n.snapshot(), "prod,4711")
	}
}

// TestControlWithoutCarrier: there is nobody to ask.
func TestControlWithoutCarrier(t *testing.T) {
	n := newNode(t, setup{control: true, probe: asking})
	sh(t, n.host, "ip link add alone type bridge; ip addr add 198.51.100.1/24 dev alone; ip link set alone up; sysctl -qw net.ipv4.conf.alone.forwarding=1")
	n.site.Config.Control.Interface = "alone"
	job := jobSpace(t)
	got, err := n.attach(job)
	require.NoError(t, err)
	assert.Equal(t, "192.0.2.100", got.Control.Addresses[0].String())
	n.release()
}

// TestControlFails: the rails, which go on meanwhile, are undone.
func TestControlFails(t *testing.T) {
	n := newNode(t, setup{cards: 2, control: true, probe: asking})
	job := jobSpace(t)
	sh(t, n.wire, "ip addr add 192.0.2.100/32 dev far0")
	before := n.snapshot()
	_, err := n.attach(job)
	require.ErrorIs(t, err, pool.ErrConflict)
	assert.ErrorContains(t, err, "job 4711: control interface: ")
	assert.NotContains(t, err.Error(), "rail rail")
	assert.NotContains(t, err.Error(), "\n")
	same(t, before, n.snapshot())
}

func TestControlAddressOfTheNodeItself(t *testing.T) {
	n := newNode(t, setup{cards: 1, control: true})
	job := jobSpace(t)
	sh(t, n.host, "ip addr add 192.0.2.100/32 dev lo")
	before := n.snapshot()
	_, err := Attach(t.Context(), n.site, Job{ID: "4711", Netns: job.FD()})
	assert.ErrorContains(t, err, `control interface: pool "control" gives 192.0.2.100, which lo of this node has; exclude it in network.toml`)
	require.NoError(t, Release(t.Context(), n.site, "4711"))
	same(t, before, n.snapshot())
}

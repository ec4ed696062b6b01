// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/pool"
)

// TestConflictOfAControlAddress leases an address that a machine of the node's network has.
func TestConflictOfAControlAddress(t *testing.T) {
	for _, probe := range []string{asking, "conflict = false\ngateway = false"} {
		n := newNode(t, setup{directory: true, control: true, probe: probe})
		job := newJobSpace(t)
		got, err := n.attach(job)
		require.NoError(t, err)
		first := got.Control.Addresses[0]
		n.release()
		runShell(t, n.wire, "ip addr add "+first.String()+"/32 dev far0")

		got, err = n.attach(job)
		require.NoError(t, err)
		if probe != asking {
			assert.Equal(t, first, got.Control.Addresses[0], "nobody asked")
			n.release()
			continue
		}
		next := got.Control.Addresses[0]
		assert.NotEqual(t, first, next)
		assert.Equal(t, next.String(), connect(t, job, next.String(), n.wire, "192.0.2.254"))
		n.release()
		assert.Contains(t, n.takeSnapshot(), "quarantine")
		assert.NotContains(t, n.takeSnapshot(), "prod,4711")
	}
}

// TestControlWithoutCarrier uses an interface without a network to probe.
func TestControlWithoutCarrier(t *testing.T) {
	n := newNode(t, setup{control: true, probe: asking})
	runShell(t, n.host, "ip link add alone type bridge; ip addr add 198.51.100.1/24 dev alone; ip link set alone up; sysctl -qw net.ipv4.conf.alone.forwarding=1")
	n.site.Config.Control.Interface = "alone"
	job := newJobSpace(t)
	got, err := n.attach(job)
	require.NoError(t, err)
	assert.Equal(t, "192.0.2.100", got.Control.Addresses[0].String())
	n.release()
}

// TestControlFails checks that the rails, whose steps run meanwhile, are undone.
func TestControlFails(t *testing.T) {
	n := newNode(t, setup{cards: 2, control: true, probe: asking})
	job := newJobSpace(t)
	runShell(t, n.wire, "ip addr add 192.0.2.100/32 dev far0")
	before := n.takeSnapshot()
	_, err := n.attach(job)
	require.ErrorIs(t, err, pool.ErrConflict)
	assert.ErrorContains(t, err, "job 4711: control interface: ")
	assert.NotContains(t, err.Error(), "rail rail")
	assert.NotContains(t, err.Error(), "\n")
	requireSame(t, before, n.takeSnapshot())
}

func TestControlAddressOfTheNodeItself(t *testing.T) {
	n := newNode(t, setup{cards: 1, control: true})
	job := newJobSpace(t)
	runShell(t, n.host, "ip addr add 192.0.2.100/32 dev lo")
	before := n.takeSnapshot()
	_, err := Attach(t.Context(), n.site, Job{ID: "4711", Netns: job.FD()})
	assert.ErrorContains(t, err, `control interface: pool "control" gives 192.0.2.100, which is an address of lo on this node; exclude it in network.toml`)
	require.NoError(t, Release(t.Context(), n.site, "4711"))
	requireSame(t, before, n.takeSnapshot())
}

// TestControlAddressIsReleasedOnce: where the pool does not answer, the record stays, and its release is repeated. The
// address may be another job's by then, whose proxy entry is not to be removed.
func TestControlAddressIsReleasedOnce(t *testing.T) {
	n := newNode(t, setup{cards: 1, control: true, directory: true})
	job := newJobSpace(t)
	got, err := Attach(t.Context(), n.site, Job{ID: "4711", Netns: job.FD()})
	require.NoError(t, err)
	pools := filepath.Join(n.dir, "pools")
	require.NoError(t, os.Rename(pools, pools+".away"))
	require.Error(t, Release(t.Context(), n.site, "4711"))
	require.NoError(t, os.Rename(pools+".away", pools))

	proxy := "ip neigh add proxy " + got.Control.Addresses[0].String() + " dev eth0"
	runShell(t, n.host, proxy)
	require.NoError(t, Release(t.Context(), n.site, "4711"))
	runShell(t, n.host, "ip neigh show proxy | grep -q '^"+got.Control.Addresses[0].String()+" '")
}

// TestDamagedRecordOfAnotherJob: addresses that are leased do not depend on it; those that follow from a slot do.
func TestDamagedRecordOfAnotherJob(t *testing.T) {
	for _, leased := range []bool{true, false} {
		n := newNode(t, setup{cards: 1, control: true, directory: leased})
		require.NoError(t, os.WriteFile(store(n.site.State).jobPath("4"), []byte("{"), 0o600))
		_, err := Attach(t.Context(), n.site, Job{ID: "4711", Netns: newJobSpace(t).FD()})
		if leased {
			assert.NoError(t, err)
			assert.NoError(t, Release(t.Context(), n.site, "4711"))
		} else {
			assert.ErrorContains(t, err, "jobs/4.json is damaged")
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/pool"
	"github.com/gojail/gojail/netsetup/probe"
)

const asking = "timeout = \"50ms\"\ntries = 2"

// attach gives job 4711 its network.
func (n *node) attach(job *link.Namespace) (*Network, error) {
	return Attach(n.t.Context(), n.site, Job{ID: "4711", Netns: job.FD()})
}

func (n *node) release() {
	n.t.Helper()
	require.NoError(n.t, Release(n.t.Context(), n.site, "4711"))
}

func TestConflictTakesTheNextAddress(t *testing.T) {
	n := newNode(t, setup{directory: true, probe: asking})
	job := newJobSpace(t)
	got, err := n.attach(job)
	require.NoError(t, err)
	first := got.Rails[0].Addresses[0]
	n.release()
	runShell(t, n.wire, "ip addr add "+first.String()+" dev sw0")

	got, err = n.attach(job)
	require.NoError(t, err)
	next := got.Rails[0].Addresses[0]
	assert.NotEqual(t, first, next)
	assert.Equal(t, next.Addr().String(), connect(t, job, next.Addr().String(), n.wire, "10.1.255.254"))
	assert.NotContains(t, runShell(t, job, "ip addr"), first.String())
	n.release()
	assert.Contains(t, n.takeSnapshot(), "quarantine")
	assert.NotContains(t, n.takeSnapshot(), "prod,4711")
}

func TestConflictOfADerivedAddress(t *testing.T) {
	n := newNode(t, setup{probe: asking})
	job := newJobSpace(t)
	runShell(t, n.wire, "ip addr add 10.1.0.1/16 dev sw0")
	before := n.takeSnapshot()
	_, err := n.attach(job)
	require.ErrorIs(t, err, pool.ErrConflict)
	assert.ErrorContains(t, err, "rail rail0 (VF 0 of pf0, 0000:80:01.0): step \"conflict\"")
	requireSame(t, before, n.takeSnapshot())
}

// TestConflictIsNotAskedAbout uses a pool with conflict = false.
func TestConflictIsNotAskedAbout(t *testing.T) {
	n := newNode(t, setup{probe: asking + "\ngateway = false", pools: []string{"subnet = \"10.1.0.0/16\"\nconflict = false"}})
	job := newJobSpace(t)
	runShell(t, n.wire, "ip addr add 10.1.0.1/16 dev sw0")
	got, err := n.attach(job)
	require.NoError(t, err)
	assert.Equal(t, "10.1.0.1", got.Rails[0].Addresses[0].Addr().String())
	n.release()
}

func TestSilentGateway(t *testing.T) {
	n := newNode(t, setup{cards: 2, probe: asking})
	job := newJobSpace(t)
	runShell(t, n.wire, "ip addr del 10.2.255.254/16 dev sw1")
	before := n.takeSnapshot()
	_, err := n.attach(job)
	require.ErrorIs(t, err, probe.ErrSilent)
	assert.ErrorContains(t, err, "rail rail1 (VF 0 of pf1, 0000:81:01.0): step \"gateway\": probe gateway 10.2.255.254 from 10.2.0.1")
	assert.NotContains(t, err.Error(), "\n")
	requireSame(t, before, n.takeSnapshot())
}

func TestNoCarrier(t *testing.T) {
	n := newNode(t, setup{probe: "carrier = \"100ms\""})
	job := newJobSpace(t)
	runShell(t, n.wire, "ip link set sw0 down")
	before := n.takeSnapshot()
	_, err := n.attach(job)
	require.ErrorAs(t, err, new(*link.NoCarrierError))
	assert.ErrorContains(t, err, "rail rail0 (VF 0 of pf0, 0000:80:01.0): step \"carrier\"")
	assert.ErrorContains(t, err, "the PF pf0 is up, without carrier")
	requireSame(t, before, n.takeSnapshot())
}

// TestOneRailFailsAndTheOthersDoNotWait checks that a failure ends the first rail, which
// would wait for its carrier forever.
func TestOneRailFailsAndTheOthersDoNotWait(t *testing.T) {
	n := newNode(t, setup{cards: 2, probe: "carrier = \"5m\""})
	runShell(t, n.wire, "ip link set sw0 down")
	before := n.takeSnapshot()
	n.site.stepHook = func(pci, step string, done bool) error {
		if pci == newCard(1).VFAddress(0) && step == "routes" {
			return errTest
		}
		return nil
	}
	_, err := n.attach(newJobSpace(t))
	require.ErrorIs(t, err, errTest)
	assert.NotContains(t, err.Error(), "rail0")
	requireSame(t, before, n.takeSnapshot())
}

// TestTwoRailsInOneSubnet checks that packets from a rail's address leave by its VF, and
// that each VF answers ARP for its own address only.
func TestTwoRailsInOneSubnet(t *testing.T) {
	n := newNode(t, setup{cards: 2, probe: asking, pools: []string{
		"subnet = \"10.9.0.0/24\"\nranges = [\"10.9.0.10-10.9.0.19\"]\ngateway = \"10.9.0.254\"",
		"subnet = \"10.9.0.0/24\"\nranges = [\"10.9.0.20-10.9.0.29\"]\ngateway = \"10.9.0.254\"",
	}})
	runShell(t, n.wire, "ip link add br0 type bridge; ip link set sw0 master br0; ip link set sw1 master br0; ip addr add 10.9.0.254/24 dev br0; ip link set br0 up")
	job := newJobSpace(t)
	got, err := n.attach(job)
	require.NoError(t, err)
	for range 3 {
		for _, r := range got.Rails {
			address := r.Addresses[0].Addr().String()
			runShell(t, n.wire, "ip neigh flush all")
			assert.Equal(t, address, connect(t, job, address, n.wire, "10.9.0.254"))
			assert.Contains(t, runShell(t, n.wire, "ip neigh show "+address), r.MAC)
		}
	}
	runShell(t, n.wire, "ip link set sw0 nomaster")
	bridge, err := n.wire.FindByName("br0")
	require.NoError(t, err)
	p := probe.Open(n.wire.FD(), bridge.Index)
	defer p.Close()
	assert.NoError(t, p.ProbeConflict(t.Context(), got.Rails[0].Addresses[0].Addr(), probe.Options{}), "only the first rail has it")
	assert.Error(t, p.ProbeConflict(t.Context(), got.Rails[1].Addresses[0].Addr(), probe.Options{}))
	for name, want := range map[string]string{"arp_ignore": "1", "arp_announce": "2", "rp_filter": "1"} {
		value, err := job.ReadSysctl("/proc", "ipv4/conf/net2/"+name)
		require.NoError(t, err)
		assert.Equal(t, want, value, name)
	}
	n.release()
}

func TestIPv6(t *testing.T) {
	n := newNode(t, setup{probe: asking, pools: []string{"subnet = \"2001:db8:1::/64\"\ngateway = \"2001:db8:1::ffff\"\nroutes = [{ to = \"2001:db8:8::/48\", via = \"2001:db8:1::ffff\" }]"}})
	runShell(t, n.wire, "ip addr add 2001:db8:1::ffff/64 dev sw0 nodad")
	job := newJobSpace(t)
	before, empty := n.takeSnapshot(), readSpace(t, job)
	got, err := n.attach(job)
	require.NoError(t, err)
	address := got.Rails[0].Addresses[0].Addr().String()
	assert.Equal(t, address, connect(t, job, address, n.wire, "2001:db8:1::ffff"))
	assert.Contains(t, runShell(t, job, "ip -6 route show table 101"), "unreachable default")
	assert.Contains(t, runShell(t, job, "ip -6 route show table 101"), "default via 2001:db8:1::ffff")
	assert.Contains(t, runShell(t, job, "ip -6 route"), "2001:db8:8::/48 via 2001:db8:1::ffff dev net1")
	assert.NotContains(t, runShell(t, job, "ip -6 route"), "default", "the gateway is in the rail's table only")
	n.release()
	requireSame(t, before, n.takeSnapshot())
	requireSame(t, empty, readSpace(t, job))
}

// TestLinkThatGoesDown checks that packets from the rail's address are rejected when its
// routes are gone, and do not leave by the control interface.
func TestLinkThatGoesDown(t *testing.T) {
	n := newNode(t, setup{control: true})
	job := newJobSpace(t)
	_, err := n.attach(job)
	require.NoError(t, err)
	runShell(t, job, "ip link set net1 down; ip link set net1 up")
	assert.Contains(t, runShell(t, job, "ip route get 10.1.255.254 from 10.1.0.1 2>&1 || true"), "No route to host")
	n.release()
}

// TestSwitchLearns checks that a neighbour that knew the address from another machine knows
// it from this one as soon as the job has it.
func TestSwitchLearns(t *testing.T) {
	n := newNode(t, setup{probe: "conflict = false\ngateway = false"})
	runShell(t, n.wire, "ip neigh replace 10.1.0.1 lladdr 02:de:ad:00:00:01 dev sw0 nud stale")
	job := newJobSpace(t)
	got, err := n.attach(job)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return strings.Contains(runShell(t, n.wire, "ip neigh show 10.1.0.1"), got.Rails[0].MAC)
	}, time.Minute, 10*time.Millisecond)
	n.release()
}

func TestWhatAJobChangesIsUndone(t *testing.T) {
	n := newNode(t, setup{directory: true, control: true})
	job := newJobSpace(t)
	before := n.takeSnapshot()
	_, err := n.attach(job)
	require.NoError(t, err)
	runShell(t, job, "ip link set net1 down; ip link set net1 address 02:00:00:aa:bb:cc mtu 1000 txqueuelen 7; ip link set net1 name own; ip addr add 172.16.0.1/24 dev own; ip link property del dev own altname alt-pf0v0; ip link set own up")
	n.release()
	requireSame(t, before, n.takeSnapshot())
}

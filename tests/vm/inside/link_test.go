// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	nic "github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/probe"
)

// openNamespace opens a network namespace by its file until the end of the test.
func openNamespace(t *testing.T, path string) *nic.Namespace {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	n, err := nic.Open(int(file.Fd()))
	require.NoError(t, err)
	t.Cleanup(n.Close)
	return n
}

// pfIndex returns the interface index of the PF.
func (c card) pfIndex(t *testing.T, host *nic.Namespace) int {
	t.Helper()
	l, err := host.FindByName(c.name)
	require.NoError(t, err)
	return l.Index
}

func TestLinkMovesAVF(t *testing.T) {
	v := findCards(t)[0].makeVFs(t, 2)[1]
	makeNamespace(t, "job")
	host, job := openNamespace(t, "/proc/self/ns/net"), openNamespace(t, "/run/netns/job")
	l, err := host.FindByPCI(v.pci)
	require.NoError(t, err)
	assert.Equal(t, v.interfaceName(), l.Name)
	assert.Equal(t, v.mac, l.MAC.String())
	requireRun(t, "ip link property add dev "+l.Name+" altname net1")

	moved, err := nic.Move(host, l.Index, job, "net1")
	require.NoError(t, err)
	assert.Equal(t, v.pci, moved.PCI)
	assert.Equal(t, []string{"net1"}, moved.Dropped)
	_, err = host.FindByPCI(v.pci)
	assert.ErrorIs(t, err, nic.ErrNotFound)
	root, err := job.MountSysfs()
	require.NoError(t, err)
	defer unix.Close(root)
	assert.DirExists(t, fmt.Sprintf("/proc/self/fd/%d/bus/pci/devices/%s/net/net1", root, v.pci))
	require.NoError(t, job.SetUp(moved.Index))
	require.NoError(t, job.WaitCarrier(t.Context(), moved.Index))

	back, err := nic.Move(job, moved.Index, host, l.Name)
	require.NoError(t, err)
	require.NoError(t, host.AddAltNames(back.Index, moved.Dropped))
	assert.Equal(t, v.interfaceName(), l.Name)
	assert.Equal(t, v.mac, back.MAC.String())
}

func TestLinkSetsTheKnobsOfAVF(t *testing.T) {
	c := findCards(t)[0]
	c.makeVFs(t, 3)
	host := openNamespace(t, "/proc/self/ns/net")
	pf := c.pfIndex(t, host)
	original, err := nic.ReadVF(host, pf, 1)
	require.NoError(t, err)
	neighbour, err := nic.ReadVF(host, pf, 2)
	require.NoError(t, err)
	require.NoError(t, host.WaitCarrier(t.Context(), pf)) // igb knows rates only once it has a speed

	address, _ := net.ParseMAC("02:00:00:00:aa:01")
	want := nic.VFKnobs{
		VLAN: &nic.VLAN{ID: 100, QoS: 3, Proto: nic.Dot1Q}, MAC: address, LinkState: new(nic.Auto),
		Rates: &nic.Rates{Max: 100}, SpoofCheck: new(false), Trust: new(true),
	}
	for range 2 {
		require.NoError(t, nic.SetVF(host, pf, 1, want))
	}
	shown := requireRun(t, "ip link show "+c.name)
	assert.Contains(t, shown, "vf 1     link/ether 02:00:00:00:aa:01 brd ff:ff:ff:ff:ff:ff, vlan 100, qos 3, tx rate 100 (Mbps), max_tx_rate 100Mbps, spoof checking off, link-state auto, trust on")
	now, err := nic.ReadVF(host, pf, 2)
	require.NoError(t, err)
	assert.Equal(t, neighbour, now)

	require.NoError(t, nic.SetVF(host, pf, 1, original))
	now, err = nic.ReadVF(host, pf, 1)
	require.NoError(t, err)
	assert.Equal(t, original, now)
}

// TestLinkUndoesHalfAVF: igb has no link states and no minimal rates, and says so
// only after the knobs before them have been set.
func TestLinkUndoesHalfAVF(t *testing.T) {
	c := findCards(t)[0]
	c.makeVFs(t, 1)
	host := openNamespace(t, "/proc/self/ns/net")
	pf := c.pfIndex(t, host)
	original, err := nic.ReadVF(host, pf, 0)
	require.NoError(t, err)
	address, _ := net.ParseMAC("02:00:00:00:aa:00")

	err = nic.SetVF(host, pf, 0, nic.VFKnobs{VLAN: &nic.VLAN{ID: 100}, MAC: address, Rates: &nic.Rates{Min: 10}, Trust: new(true)})
	assert.ErrorIs(t, err, unix.EINVAL)
	assert.ErrorContains(t, err, "set the rates")
	now, readErr := nic.ReadVF(host, pf, 0)
	require.NoError(t, readErr)
	assert.Equal(t, original, now)

	err = nic.SetVF(host, pf, 0, nic.VFKnobs{LinkState: new(nic.Disable), MAC: address})
	assert.ErrorIs(t, err, unix.EOPNOTSUPP)
	assert.ErrorContains(t, err, "set the link state")
	assert.ErrorContains(t, err, "leave it out of network.toml")
	err = nic.SetVF(host, pf, 0, nic.VFKnobs{NodeGUID: new(uint64(1))})
	assert.ErrorIs(t, err, unix.EOPNOTSUPP)
	assert.ErrorContains(t, err, "set the node GUID")
	err = nic.SetVF(host, pf, 0, nic.VFKnobs{VLAN: &nic.VLAN{ID: 100, Proto: "802.1ad"}})
	assert.ErrorIs(t, err, unix.EPROTONOSUPPORT, "igb has 802.1Q only")
	_, err = nic.ReadVF(host, pf, 6)
	assert.ErrorIs(t, err, nic.ErrNotFound)
}

// TestLinkOfADeadNamespace: a VF comes back by itself, under the name that it had
// there, or another one if that is in use; it is found by its PCI address.
func TestLinkOfADeadNamespace(t *testing.T) {
	vfs := findCards(t)[0].makeVFs(t, 2)
	host := openNamespace(t, "/proc/self/ns/net")
	for i, v := range vfs {
		old := v.interfaceName()
		requireRun(t, "ip netns add job")
		job := openNamespace(t, "/run/netns/job")
		l, err := host.FindByPCI(v.pci)
		require.NoError(t, err)
		_, err = nic.Move(host, l.Index, job, "net1")
		require.NoError(t, err)
		job.Close()
		requireRun(t, "ip netns del job")
		v.waitForReturn(t)
		l, err = host.FindByPCI(v.pci)
		require.NoError(t, err)
		assert.Equal(t, i == 0, l.Name == "net1", "VF %d is %s", i, l.Name)
		if i == 1 {
			first, err := host.FindByPCI(vfs[0].pci)
			require.NoError(t, err)
			require.ErrorIs(t, host.Rename(l.Index, first.Name), nic.ErrNameTaken)
			require.NoError(t, host.Rename(first.Index, "gone0"))
			require.NoError(t, host.Rename(l.Index, old))
		}
	}
}

func TestLinkRDMAMode(t *testing.T) {
	v := findCards(t)[0].makeVFs(t, 1)[0]
	host := openNamespace(t, "/proc/self/ns/net")
	addRDMADevice(t, "rxe", "rxe0", v.interfaceName(), "")
	mode, err := host.ReadRDMAMode()
	require.NoError(t, err)
	assert.Equal(t, nic.RDMAShared, mode)
	devices, err := host.ListRDMADevices()
	require.NoError(t, err)
	require.Len(t, devices, 1)
	assert.Equal(t, "rxe0", devices[0].Name)
	assert.Equal(t, requireRun(t, "cat /sys/class/infiniband/rxe0/node_guid"), devices[0].NodeGUID)
	files, err := nic.ListRDMAFiles("/sys", "rxe0")
	require.NoError(t, err)
	for _, f := range files {
		var st unix.Stat_t
		require.NoError(t, unix.Stat("/dev/"+f.Path, &st))
		assert.Equal(t, f.Number(), st.Rdev, f.Path)
	}
	assert.Equal(t, "infiniband/uverbs0", files[0].Path)

	makeNamespace(t, "job")
	job := openNamespace(t, "/run/netns/job")
	assert.ErrorIs(t, nic.MoveRDMA(host, "rxe0", job), nic.ErrRDMAShared)
	err = host.SetRDMAMode(nic.RDMAExclusive)
	assert.ErrorIs(t, err, nic.ErrRDMABusy)
	assert.ErrorContains(t, err, "/etc/modprobe.d")
}

// TestLinkMovesAnRDMADevice: in exclusive mode, there and back, and refused where the driver cannot.
func TestLinkMovesAnRDMADevice(t *testing.T) {
	v := findCards(t)[0].makeVFs(t, 1)[0]
	needOwnModules(t)
	host := openNamespace(t, "/proc/self/ns/net")
	require.NoError(t, host.SetRDMAMode(nic.RDMAExclusive))
	t.Cleanup(func() {
		waitFor(t, "the end of the namespaces", func() bool { return host.SetRDMAMode(nic.RDMAShared) == nil })
	})
	makeNamespace(t, "job")
	job := openNamespace(t, "/run/netns/job")
	addRDMADevice(t, "rxe", "rxe0", v.interfaceName(), "")
	assert.ErrorIs(t, nic.MoveRDMA(host, "rxe7", job), nic.ErrNotFound)
	require.NoError(t, nic.MoveRDMA(host, "rxe0", job))
	inside, err := job.ListRDMADevices()
	require.NoError(t, err)
	assert.Len(t, inside, 1)
	outside, err := host.ListRDMADevices()
	require.NoError(t, err)
	assert.Empty(t, outside)
	assert.ErrorIs(t, nic.MoveRDMA(host, "rxe0", job), nic.ErrNotFound)
	root, err := job.MountSysfs()
	require.NoError(t, err)
	files, err := nic.ListRDMAFiles(fmt.Sprintf("/proc/self/fd/%d", root), "rxe0")
	unix.Close(root)
	require.NoError(t, err)
	assert.Equal(t, "infiniband/uverbs0", files[0].Path)
	require.NoError(t, nic.MoveRDMA(job, "rxe0", host))
	outside, err = host.ListRDMADevices()
	require.NoError(t, err)
	assert.Len(t, outside, 1)
	job.Close()
}

// TestLinkProbesOverVFs: ARP and NDP through the cards' own switches, and not into another VLAN.
func TestLinkProbesOverVFs(t *testing.T) {
	c := findCards(t)[0]
	vfs := c.makeVFs(t, 2)
	var index [2]int
	for i, name := range []string{"a", "b"} {
		makeNamespace(t, name)
		vfs[i].moveInto(t, name, fmt.Sprintf("192.0.2.%d", i+1))
		requireRun(t, fmt.Sprintf("ip -n %s addr add 2001:db8::%d/64 dev vf0 nodad", name, i+1))
		l, err := openNamespace(t, "/run/netns/"+name).FindByName("vf0")
		require.NoError(t, err)
		index[i] = l.Index
	}
	p := probe.Open(openNamespace(t, "/run/netns/a").FD(), index[0])
	defer p.Close()
	ask := probe.Options{Tries: 10, Timeout: 300 * time.Millisecond}
	for own, other := range map[string]string{"192.0.2.1": "192.0.2.2", "2001:db8::1": "2001:db8::2"} {
		from, to := netip.MustParseAddr(own), netip.MustParseAddr(other)
		var conflict *probe.ConflictError
		require.ErrorAs(t, p.ProbeConflict(t.Context(), to, ask), &conflict)
		assert.Equal(t, vfs[1].mac, conflict.MAC.String())
		mac, err := p.ProbeGateway(t.Context(), from, to, ask)
		require.NoError(t, err)
		assert.Equal(t, vfs[1].mac, mac.String())
		require.NoError(t, p.Announce(from))
		assert.NoError(t, p.ProbeConflict(t.Context(), from, probe.Options{}), "what comes back of our own is none")
	}
	requireRun(t, "ip link set "+c.name+" vf 1 vlan 100")
	_, err := p.ProbeGateway(t.Context(), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), probe.Options{})
	assert.ErrorIs(t, err, probe.ErrSilent)
}

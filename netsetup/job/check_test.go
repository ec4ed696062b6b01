// SPDX-License-Identifier: Apache-2.0

package job

import (
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// long is not reached if all answer; short is reached if a node does not answer.
const (
	long  = time.Minute
	short = 10 * time.Second
)

func TestEverybodyAnswers(t *testing.T) {
	f := newFabric(t, 3)
	f.silenceGateways()
	all := f.check(long)
	assert.Equal(t, []string{"ok | ok", "ok | ok", "ok | ok"}, listResults(all))
	assert.Equal(t, answer{Interface: "net1", Result: "ok", State: "up", Addresses: []string{"10.77.0.1/24"},
		Gateways: []string{"10.77.0.254"}, Silent: []string{}, Problems: []string{}}, all[0][0])
	assert.Equal(t, []string{"fd77::254"}, all[2][1].Gateways)
	assert.Equal(t, listResults(all), listResults(f.check(long)), "once more, with what the kernel knows by now")
}

func TestOnePortIsInAnotherNetwork(t *testing.T) {
	f := newFabric(t, 3)
	f.runIn(f.sw, "ip link set port2r1 nomaster")
	all := f.check(short)
	assert.Equal(t, []string{"ok | 1/2", "ok | 1/2", "ok | no gateway"}, listResults(all))
	assert.Equal(t, []string{"n3"}, all[0][1].Silent)
	assert.Equal(t, []string{"no answer to fd77::2 from n3"}, all[1][1].Problems)
	assert.Equal(t, []string{"the gateway fd77::254 does not answer", "no answer to fd77::3 from n1,n2"}, all[2][1].Problems)
}

func TestInterfacesThatAreNotRight(t *testing.T) {
	f := newFabric(t, 4)
	f.runIn(f.sw, "ip link set port0r0 down")
	f.runIn(f.nodes[1], "ip link set net1 down")
	f.runIn(f.nodes[2], "ip addr flush dev net1; ip addr add 10.77.0.33/24 dev net1")
	f.runIn(f.nodes[3], "ip link del net2")
	f.waitForCarrier(f.nodes[0], "net1", false)
	all := f.check(short)
	assert.Equal(t, []string{"no carrier | 2/3", "down | 2/3", "no address | 2/3", "0/3 | missing"}, listResults(all))
	assert.Equal(t, []string{"net1 does not have the address 10.77.0.3"}, all[2][0].Problems)
}

// TestWrongTable uses a table that leads nowhere. Peers are answered from the rail's
// address, so the error shows on both sides.
func TestWrongTable(t *testing.T) {
	f := newFabric(t, 2)
	f.runIn(f.nodes[0], "ip route flush table 101; ip route add unreachable default table 101")
	all := f.check(short)
	assert.Equal(t, []string{"no route | ok", "0/1 | ok"}, listResults(all), "n1 hears the question, and its answer has no way")
	assert.Regexp(t, "^cannot send from 10.77.0.1: .*10.77.0.2:[0-9]+: sendto: no route to host$", all[0][0].Problems[0])
}

func TestVariablesAreNotNeeded(t *testing.T) {
	f := newFabric(t, 2)
	all := f.check(long, "GOJAIL_NET_RAILS=")
	assert.Equal(t, []string{"ok | ok", "ok | ok"}, listResults(all))
	assert.Equal(t, "net2", all[0][1].Interface)
}

// TestRDMA needs no interface: a fake sysfs replaces the job's.
func TestRDMA(t *testing.T) {
	sys := t.TempDir()
	port := sys + "/bus/pci/devices/0000:86:01.0/infiniband/mlx5_3/ports/1"
	require.NoError(t, os.MkdirAll(port, 0o755))
	check := func(device, state string) []string {
		require.NoError(t, os.WriteFile(port+"/state", []byte(state+"\n"), 0o644))
		r := &Result{Rail: Rail{PCI: "0000:86:01.0", State: Up, Interface: "net1", device: splitFields(device)}, Result: resultOK}
		r.readRDMADevices(sys)
		assert.True(t, r.checkLocal(), "IP is asked all the same")
		return append([]string{r.Result}, r.Problems...)
	}
	assert.Equal(t, []string{"ok"}, check("mlx5_3", "4: ACTIVE"))
	assert.Equal(t, []string{"ok"}, check("", "1: DOWN"))
	assert.Equal(t, []string{"RDMA down", "port 1 of the RDMA device mlx5_3 is not active"}, check("mlx5_3", "1: DOWN"))
	assert.Equal(t, []string{"no RDMA", "the RDMA device mlx5_9 is missing"}, check("mlx5_9", "4: ACTIVE"))
	assert.Equal(t, []string{"no RDMA", "the RDMA device mlx5_9 is missing"}, check("mlx5_3,mlx5_9", "4: ACTIVE"))

	// A card that has RDMA devices alone is up, and asked for nothing else.
	r := &Result{Rail: Rail{PCI: "0000:86:01.0", device: []string{"mlx5_3"}}, Result: resultOK}
	require.NoError(t, os.WriteFile(port+"/state", []byte("4: ACTIVE\n"), 0o644))
	require.NoError(t, r.readState(nil, sys))
	assert.False(t, r.checkLocal())
	assert.Equal(t, []any{resultOK, Up, []string{"mlx5_3"}}, []any{r.Result, r.State, r.RDMA})
}

func TestMessagesOfOthers(t *testing.T) {
	step, err := ReadStep(func(name string) string {
		return map[string]string{"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "n[1-3]", "SLURM_NODEID": "1", "SLURM_LOCALID": "0"}[name]
	})
	require.NoError(t, err)
	m := &meeting{step: step, done: make([]bool, 3)}
	e := &endpoint{own: netip.MustParsePrefix("10.1.0.5/24")}
	from := netip.MustParseAddr("10.1.0.77")
	good := message{Gojail: asks, Job: "7", Step: "0", Node: 2}
	assert.True(t, m.isOurs(e, good, from))
	assert.True(t, m.isOurs(&endpoint{own: netip.MustParsePrefix("fd00::1/64")}, good, netip.MustParseAddr("fd00::2%net1")))
	assert.False(t, m.isOurs(e, good, netip.MustParseAddr("10.2.0.77")), "another rail on the same link")
	for name, change := range map[string]func(*message){
		"job": func(m *message) { m.Job = "8" }, "step": func(m *message) { m.Step = "1" },
		"our own": func(m *message) { m.Node = 1 }, "no such node": func(m *message) { m.Node = 3 }, "negative": func(m *message) { m.Node = -1 },
	} {
		bad := good
		change(&bad)
		assert.False(t, m.isOurs(e, bad, from), name)
	}
}

func TestOutsideOfAStep(t *testing.T) {
	_, err := ReadStep(func(string) string { return "" })
	assert.ErrorContains(t, err, "start it with: srun --ntasks-per-node=1 gojail net check")
	_, err = ReadStep(func(name string) string {
		return map[string]string{"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "n[1-3]", "SLURM_NODEID": "3", "SLURM_LOCALID": "0"}[name]
	})
	assert.EqualError(t, err, "SLURM_NODEID is 3, but the step has 3 nodes")
}

func TestPauses(t *testing.T) {
	for nodes, want := range map[int]time.Duration{2: 500 * time.Millisecond, 250: 500 * time.Millisecond, 600: 1200 * time.Millisecond, 5000: 2 * time.Second} {
		assert.Equal(t, want, limitPause(nodes), nodes)
	}
}

// TestErrorThatPasses checks that a failed packet does not matter once another packet was
// sent, or the node has heard from all nodes.
func TestErrorThatPasses(t *testing.T) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	defer conn.Close()
	nowhere, here := netip.MustParseAddrPort("240.0.0.1:9"), conn.LocalAddr().(*net.UDPAddr).AddrPort()
	e := &endpoint{own: netip.MustParsePrefix("127.0.0.1/8"), ask: conn, all: nowhere, answered: []bool{true, true, true}, failed: map[int]error{}}
	m := &meeting{endpoints: []*endpoint{e}, done: make([]bool, 3)}
	result := func() string {
		r := &Result{Result: resultOK}
		r.reportPeers(e, &m.step)
		return r.Result
	}
	m.askOnce()
	m.sendMessage(e, answers, nowhere, 1)
	m.sendMessage(e, answers, nowhere, 2)
	assert.Len(t, e.failed, 3)
	assert.Equal(t, "no route", result())
	e.all = here
	m.askOnce()
	m.sendMessage(e, answers, here, 1)
	assert.Equal(t, "no route", result(), "node 2 has had nothing")
	m.done[2] = true
	m.forgetErrors()
	assert.Equal(t, resultOK, result())
}

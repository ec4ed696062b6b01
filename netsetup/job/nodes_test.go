// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/netsetup/netns"
)

// TestMain runs this program again as each task of a step.
func TestMain(m *testing.M) {
	if os.Getenv("JOBNET_TASK") == "" {
		os.Exit(m.Run())
	}
	timeout, err := time.ParseDuration(os.Getenv("JOBNET_TASK"))
	if err != nil {
		panic(err)
	}
	view, err := ReadView(os.Getenv, "/sys")
	if err != nil {
		panic(err)
	}
	step, err := ReadStep(os.Getenv)
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	io.ReadAll(os.Stdin) // until all of the step are
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := json.NewEncoder(os.Stdout).Encode(Check(ctx, view, &step)); err != nil {
		panic(err)
	}
}

// fabric is a switch for each rail, which is also the gateway, and nodes with an interface
// on each rail: net1 is rail0 (IPv4), net2 is rail1 (IPv6).
type fabric struct {
	t       *testing.T
	sw      int // the network namespace of the switches
	nodes   []int
	program string
}

var subnets = []string{"10.77.0.%d/24", "fd77::%d/64"}

func newFabric(t *testing.T, nodes int) *fabric {
	t.Helper()
	if !nstest.IsRoot() {
		t.Skip("needs root, to make network namespaces")
	}
	f := &fabric{t: t, sw: newNamespace(t), program: copyProgram(t)}
	f.runIn(f.sw, "ip link add rail0 type bridge; ip link add rail1 type bridge; "+
		"sysctl -qw net.ipv6.conf.rail1.accept_dad=0; ip addr add 10.77.0.254/24 dev rail0; ip addr add fd77::254/64 dev rail1; ip link set rail0 up; ip link set rail1 up")
	for n := range nodes {
		node := newNamespace(t)
		f.nodes = append(f.nodes, node)
		for rail, subnet := range subnets {
			f.addVeth(node, fmt.Sprintf("port%dr%d", n, rail), fmt.Sprintf("net%d", rail+1))
			address := fmt.Sprintf(subnet, n+1)
			own, _, _ := strings.Cut(address, "/")
			f.runIn(f.sw, fmt.Sprintf("ip link set port%dr%d master rail%d up", n, rail, rail))
			f.runIn(node, fmt.Sprintf("ip addr add %[1]s dev net%[2]d nodad; ip link set net%[2]d up; ip rule add from %[3]s lookup %[4]d 2>/dev/null || ip -6 rule add from %[3]s lookup %[4]d",
				address, rail+1, own, 101+rail))
		}
		f.runIn(node, "ip link set lo up; ip route add 10.77.0.0/24 dev net1 table 101; ip route add default via 10.77.0.254 dev net1 table 101; "+
			"ip -6 route add fd77::/64 dev net2 table 102; ip -6 route add default via fd77::254 dev net2 table 102")
	}
	for _, node := range f.nodes {
		f.waitForCarrier(node, "net1", true)
		f.waitForCarrier(node, "net2", true)
	}
	return f
}

// silenceGateways makes the gateways drop the packets of the check, so that only the
// kernel's neighbour entries show an answer.
func (f *fabric) silenceGateways() {
	f.t.Helper()
	require.NoError(f.t, netns.RunInside(f.sw, func() error {
		conn, err := net.ListenPacket("udp", fmt.Sprintf(":%d", discardPort))
		if err == nil {
			f.t.Cleanup(func() { conn.Close() })
		}
		return err
	}))
}

// waitForCarrier polls until a link has carrier, or has none, which the kernel reports with
// a delay.
func (f *fabric) waitForCarrier(ns int, name string, carrier bool) {
	f.t.Helper()
	handle, err := netlink.NewHandleAt(vnetns.NsHandle(ns))
	require.NoError(f.t, err)
	defer handle.Close()
	require.Eventually(f.t, func() bool {
		l, err := handle.LinkByName(name)
		return err == nil && carrier == (l.Attrs().RawFlags&unix.IFF_RUNNING != 0)
	}, time.Minute, time.Millisecond, "the carrier of %s", name)
}

func newNamespace(t *testing.T) int {
	ns, err := netns.New()
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(ns) })
	return ns
}

// copyProgram returns the path of a copy of this program that any user may run.
func copyProgram(t *testing.T) string {
	dir, err := os.MkdirTemp("/var/tmp", "gojail-test-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	own, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer own.Close()
	path := filepath.Join(dir, "task")
	copied, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(copied, own)
	require.NoError(t, err)
	require.NoError(t, copied.Close())
	return path
}

func (f *fabric) addVeth(node int, port, name string) {
	handle, err := netlink.NewHandleAt(vnetns.NsHandle(f.sw))
	require.NoError(f.t, err)
	defer handle.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = port
	require.NoError(f.t, handle.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: name, PeerNamespace: netlink.NsFd(node)}))
}

// runIn runs a shell command in a network namespace.
func (f *fabric) runIn(ns int, line string) {
	f.t.Helper()
	require.NoError(f.t, netns.RunInside(ns, func() error {
		out, err := exec.Command("sh", "-c", line).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", line, err, out)
		}
		return nil
	}))
}

// answer is a task's result of one rail.
type answer struct {
	Interface string
	Result    string
	State     string
	Addresses []string
	Gateways  []string
	Silent    []string
	Problems  []string
}

// check runs a task on each node at once, as nobody and without privilege.
func (f *fabric) check(timeout time.Duration, env ...string) [][]answer {
	f.t.Helper()
	tasks := make([]*exec.Cmd, len(f.nodes))
	errors := make([]strings.Builder, len(f.nodes))
	out, start := make([]*bufio.Reader, len(f.nodes)), make([]io.Closer, len(f.nodes))
	for n, node := range f.nodes {
		cmd := exec.Command(f.program)
		cmd.Env = append([]string{
			"JOBNET_TASK=" + timeout.String(), "SLURM_JOB_ID=4711", "SLURM_STEP_ID=3", fmt.Sprintf("SLURM_NODEID=%d", n), "SLURM_LOCALID=0",
			fmt.Sprintf("SLURM_STEP_NODELIST=n[1-%d]", len(f.nodes)),
			"GOJAIL_NET_RAILS=rail0,rail1", "GOJAIL_NET_RAIL0_IFNAME=net1", "GOJAIL_NET_RAIL1_IFNAME=net2",
			fmt.Sprintf("GOJAIL_NET_RAIL0_ADDRESS=10.77.0.%d", n+1), fmt.Sprintf("GOJAIL_NET_RAIL1_ADDRESS=fd77::%d", n+1)}, env...)
		cmd.Stderr = &errors[n]
		stdout, err := cmd.StdoutPipe()
		require.NoError(f.t, err)
		out[n] = bufio.NewReader(stdout)
		start[n], err = cmd.StdinPipe()
		require.NoError(f.t, err)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Pdeathsig: syscall.SIGKILL}
		require.NoError(f.t, netns.RunInside(node, cmd.Start))
		tasks[n] = cmd
	}
	for n := range tasks {
		line, _ := out[n].ReadString('\n')
		require.Equal(f.t, "ready\n", line, errors[n].String())
	}
	for _, s := range start {
		s.Close()
	}
	var all [][]answer
	for n, cmd := range tasks {
		var answers []answer
		require.NoError(f.t, json.NewDecoder(out[n]).Decode(&answers), errors[n].String())
		require.NoError(f.t, cmd.Wait(), errors[n].String())
		all = append(all, answers)
	}
	return all
}

// listResults returns the results of each node, "ok ok".
func listResults(all [][]answer) []string {
	var lines []string
	for _, answers := range all {
		var words []string
		for _, a := range answers {
			words = append(words, a.Result)
		}
		lines = append(lines, strings.Join(words, " | "))
	}
	return lines
}

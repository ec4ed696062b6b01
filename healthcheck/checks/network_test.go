// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	jailcheck "github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/netsetup/fake/fakesys"
)

const (
	routeHead  = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	routeLocal = "eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
	routeEth0  = "eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
	routeEth1  = "eth1\t00000000\t010200C0\t0003\t0\t0\t50\t00000000\t0\t0\t0\n"
)

func TestDefaultRoute(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	table := h.Roots.Proc + "/net/route"
	for _, i := range []string{"eth0", "eth1"} {
		put(t, h.Roots.Sys+"/class/net/"+i+"/operstate", "up\n")
	}
	put(t, table, routeHead+routeLocal)
	expect(t, once(h, defaultRoute, s), check.NotApplicable, "")
	s.Network.Interface = "eth0"
	expect(t, once(h, defaultRoute, s), check.Fail, "the node has no default route")
	put(t, table, routeHead+routeLocal+routeEth0)
	expect(t, once(h, defaultRoute, s), check.OK, "")
	put(t, table, routeHead+routeEth0+routeEth1) // that of the lower metric counts
	expect(t, once(h, defaultRoute, s), check.Fail, "the default route leads to eth1 and not to eth0")
	put(t, table, routeHead+routeEth0)
	put(t, h.Roots.Sys+"/class/net/eth0/operstate", "down\n")
	expect(t, once(h, defaultRoute, s), check.Fail, "eth0, which has the default route, is down")
	put(t, table, "garbage")
	expect(t, once(h, defaultRoute, s), check.Unknown, "")
	put(t, table, routeHead)
	put(t, h.Roots.Proc+"/net/ipv6_route",
		"00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 00000001 00000001 00000000 00200200       lo\n"+
			"00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000400 00000001 00000000 00450003     eth1\n")
	s.Network.Interface = "eth1"
	expect(t, once(h, defaultRoute, s), check.OK, "")
}

func port(t *testing.T, h *check.Host, device, state, physical, rate string) string {
	dir := h.Roots.Sys + "/class/infiniband/" + device + "/ports/1"
	put(t, dir+"/state", state+"\n")
	put(t, dir+"/phys_state", physical+"\n")
	put(t, dir+"/rate", rate+"\n")
	return dir
}

func TestRDMAPorts(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	expect(t, once(h, rdmaPorts, s), check.NotApplicable, "")
	s.Network.Ports = []string{"mlx5_0"}
	expect(t, once(h, rdmaPorts, s), check.Fail, "RDMA port mlx5_0 is not there")
	port(t, h, "mlx5_0", "4: ACTIVE", "5: LinkUp", "400 Gb/sec (4X NDR)")
	port(t, h, "mlx5_1", "1: DOWN", "2: Polling", "10 Gb/sec")
	port(t, h, "mlx5_2", "1: DOWN", "3: Disabled", "10 Gb/sec")
	port(t, h, "mlx5_3", "1: DOWN", "2: Polling", "10 Gb/sec") // a VF
	put(t, h.Roots.Sys+"/class/infiniband/mlx5_3/device/physfn/vendor", "")
	expect(t, once(h, rdmaPorts, s), check.OK, "")
	s.Network.Rate = 400
	expect(t, once(h, rdmaPorts, s), check.OK, "")
	s.Network.Rate = 800
	expect(t, once(h, rdmaPorts, s), check.Fail, "RDMA port mlx5_0/1 is slower than 800 Gbit/s")
	s.Network.Ports, s.Network.Rate = nil, 0
	expect(t, once(h, rdmaPorts, s), check.Warn, "RDMA port mlx5_1/1 is not up")
	s.Network.Except = []string{"mlx5_1"}
	expect(t, once(h, rdmaPorts, s), check.OK, "")
	s.Network.Ports = []string{"mlx5_0/1", "mlx5_0/2"}
	port(t, h, "mlx5_0", "2: INIT", "5: LinkUp", "400 Gb/sec (4X NDR)")
	expect(t, once(h, rdmaPorts, s), check.Fail, "RDMA port mlx5_0/1 is not up; RDMA port mlx5_0/2 is not there")
	s.Network.Ports = []string{"mlx5_0"}
	port(t, h, "mlx5_0", "perhaps", "5: LinkUp", "")
	expect(t, once(h, rdmaPorts, s), check.Unknown, "")
}

func TestRDMAFlaps(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	dir := port(t, h, "mlx5_0", "4: ACTIVE", "5: LinkUp", "400 Gb/sec")
	expect(t, once(h, rdmaFlaps, s), check.NotApplicable, "")
	put(t, dir+"/counters/link_downed", "200\n")
	f := again(h, rdmaFlaps, s, check.Finding{})
	expect(t, f, check.OK, "") // what was before is not known
	put(t, dir+"/counters/link_downed", "202\n")
	f = again(h, rdmaFlaps, s, f)
	expect(t, f, check.Warn, "the link of RDMA port mlx5_0/1 was down")
	put(t, dir+"/counters/link_downed", "203\n")
	f = again(h, rdmaFlaps, s, f)
	expect(t, f, check.Fail, "the link of RDMA port mlx5_0/1 goes up and down")
	put(t, dir+"/counters/link_downed", "0\n") // the driver was loaded anew
	f = again(h, rdmaFlaps, s, f)
	expect(t, f, check.Fail, "")
	now := h.Now().Add(flapTime + time.Second)
	h.Now = func() time.Time { return now }
	expect(t, again(h, rdmaFlaps, s, f), check.OK, "")
	put(t, dir+"/counters/link_downed", "many\n")
	expect(t, again(h, rdmaFlaps, s, f), check.NotApplicable, "")
}

const policyText = `
[[policy]]
name = "left"
vfs = 2
rdma = "none"
[policy.nic]
pf = ["ens1f0"]
`

func TestVFs(t *testing.T) {
	n := fakesys.New(t)
	n.AddCard(fakesys.Card{PCI: "0000:86:00.0", Under: "pci0000:80/0000:80:01.0", Name: "ens1f0", TotalVFs: 8, NumVFs: 2, RDMA: "mlx5_0"})
	h, s := testHost(t), config.DefaultSettings()
	h.Roots.Sys, h.Roots.Proc, h.Roots.Dev = n.Sys, n.Proc, n.Dev
	s.Network.Config = h.Roots.Etc + "/network.toml"
	expect(t, once(h, vfs, s), check.NotApplicable, "")
	put(t, s.Network.Config, policyText)
	f := once(h, vfs, s)
	expect(t, f, check.OK, "")
	put(t, n.Device("0000:86:00.0")+"/sriov_numvfs", "1\n")
	expect(t, once(h, vfs, s), check.Fail, "ens1f0 has fewer VFs than its policy wants")
	put(t, n.Device("0000:86:00.0")+"/sriov_numvfs", "2\n")
	require.NoError(t, os.Remove(n.Device("0000:86:01.1")+"/driver"))
	expect(t, once(h, vfs, s), check.Fail, "VF 0000:86:01.1 has no driver")
	put(t, n.Device("0000:86:00.0")+"/sriov_totalvfs", "0\n")
	expect(t, once(h, vfs, s), check.Fail, "VF 0000:86:01.1 has no driver; ens1f0: SR-IOV: at most 0 VFs; wanted: 2 VFs")
	put(t, n.Device("0000:86:00.0")+"/sriov_numvfs", "0\n") // no wonder
	expect(t, once(h, vfs, s), check.Fail, "VF 0000:86:01.1 has no driver; ens1f0: SR-IOV: at most 0 VFs; wanted: 2 VFs")
	put(t, s.Network.Config, "rot = 1\n")
	expect(t, once(h, vfs, s), check.Fail, "")
}

func TestQuarantine(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	s.Network.Config, s.Jail.State = h.Roots.Etc+"/network.toml", h.Roots.Run+"/state-%n"
	expect(t, once(h, quarantine, s), check.NotApplicable, "")
	put(t, s.Network.Config, policyText)
	expect(t, once(h, quarantine, s), check.OK, "")
	put(t, h.Roots.Run+"/state-n1/net/vf/0000:86:00.2.json", "{") // a damaged journal
	expect(t, once(h, quarantine, s), check.Warn, "VF 0000:86:00.2 is in quarantine")
}

func TestJail(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	s.Jail = check.JailSettings{Config: h.Roots.Etc + "/gojail.toml", State: h.Roots.Run + "/gojail", LibDir: h.Roots.Etc}
	expect(t, once(h, jails, s), check.NotApplicable, "")
	put(t, h.Roots.Etc+"/slurm/slurm.conf", "")
	put(t, h.Roots.Etc+"/slurm/plugstack.conf", "required /lib/gojail/spank_gojail.so config="+h.Roots.Etc+"/none.toml\n")
	expect(t, once(h, jails, s), check.Fail, "") // every step fails without that file
	put(t, h.Roots.Etc+"/slurm/plugstack.conf", "")
	put(t, s.Jail.Config, "rot = 1\n")
	expect(t, once(h, jails, s), check.Fail, "")
	var p problems
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.OK, Subject: "kernel", Found: "good"})
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Warn, Subject: "latency", Found: "slow", Remedy: "x"})
	expect(t, p.finding("good"), check.OK, "good")
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Fail, Subject: "jail a", Found: "jail root /x: stale file handle", Remedy: "mount its storage"})
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Fail, Subject: "jail b", Found: "jail root /y: stale file handle", Remedy: "mount its storage"})
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Fail, Subject: "jail c", Found: "bad"})
	f := p.finding("good")
	expect(t, f, check.Fail, "jail a: jail root /x: stale file handle; jail b: jail root /y: stale file handle; jail c: bad")
	assert.Equal(t, "latency: slow; mount its storage", f.Detail, "each remedy once")
}

// What users can bring about on every node drains none.
func TestJailWithUsersContent(t *testing.T) {
	var p problems
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Fail, Subject: "jail a", Found: "mount targets are missing", Remedy: "make them", Content: true})
	f := p.finding("good")
	expect(t, f, check.Warn, "jail a: mount targets are missing")
	assert.Equal(t, "make them", f.Detail)
	judgeJail(&p, jailcheck.Finding{Level: jailcheck.Fail, Subject: "jail b", Found: "bad"})
	expect(t, p.finding("good"), check.Fail, "jail b: bad")

	// A node that has nothing of gojail, but two jails that lack everything.
	if os.Geteuid() != 0 {
		t.Skip("needs root: a tree of a user")
	}
	h, s := testHost(t), config.DefaultSettings()
	s.Jail = check.JailSettings{Config: h.Roots.Etc + "/gojail.toml", State: h.Roots.Run + "/gojail", LibDir: h.Roots.Etc}
	put(t, h.Roots.Run+"/ours/x", "")
	put(t, h.Roots.Run+"/theirs/x", "")
	require.NoError(t, os.Chown(h.Roots.Run+"/theirs", 65534, 65534))
	put(t, s.Jail.Config, fmt.Sprintf("default = \"ours\"\n[jail.ours]\nroot = %q\n[jail.theirs]\nroot = %q\n", h.Roots.Run+"/ours", h.Roots.Run+"/theirs"))
	p = problems{}
	jailcheck.Check(jailNode(h, s), func(f jailcheck.Finding) { judgeJail(&p, f) })
	assert.Contains(t, fmt.Sprint(p.fail), "jail ours: mount targets are missing")
	assert.NotContains(t, fmt.Sprint(p.fail), "jail theirs")
	assert.Contains(t, fmt.Sprint(p.warn), "jail theirs: mount targets are missing")
}

// The plugin is looked for where make install with this program's PREFIX puts it.
func TestLibDirOfThisProgram(t *testing.T) {
	if os.Getenv("GOJAIL_TEST_LIBDIR") != "" {
		fmt.Println("libdir " + jailNode(testHost(t), config.DefaultSettings()).LibDir)
		return
	}
	prefix := t.TempDir() + "/usr"
	require.NoError(t, os.MkdirAll(prefix+"/sbin", 0o755))
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(prefix+"/sbin/gojail-healthcheck", self, 0o755))
	cmd := exec.Command(prefix+"/sbin/gojail-healthcheck", "-test.run=^TestLibDirOfThisProgram$")
	cmd.Env = append(os.Environ(), "GOJAIL_TEST_LIBDIR=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "libdir "+prefix+"/lib/gojail\n")

	s := config.DefaultSettings()
	s.Jail.LibDir = "/opt/gojail"
	assert.Equal(t, "/opt/gojail", jailNode(testHost(t), s).LibDir)
}

func TestJailLeftovers(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	s.Jail = check.JailSettings{Config: h.Roots.Etc + "/gojail.toml", State: h.Roots.Run + "/gojail", LibDir: h.Roots.Etc}
	expect(t, once(h, leftovers, s), check.NotApplicable, "")
	put(t, s.Jail.Config, "")
	expect(t, once(h, leftovers, s), check.OK, "")
	require.NoError(t, os.MkdirAll(s.Jail.State+"/jobs/17", 0o700)) // an allocation between two steps
	require.NoError(t, os.Chmod(s.Jail.State, 0o700))
	f := once(h, leftovers, s)
	f = again(h, leftovers, s, f)
	expect(t, f, check.OK, "")
	put(t, s.Jail.State+"/ended/18", "")
	put(t, s.Jail.State+"/ended/.tried", "\n")
	f = again(h, leftovers, s, f)
	expect(t, f, check.OK, "") // it may be made up for just now
	f = again(h, leftovers, s, f)
	expect(t, f, check.Warn, "gojail still has something of jobs that have ended")
	assert.Equal(t, "job 18", f.Detail)
}

func TestController(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: a ping has a raw socket")
	}
	h, s := testHost(t), config.DefaultSettings()
	expect(t, once(h, controller, s), check.NotApplicable, "")
	put(t, h.Roots.Run+"/slurm/conf/slurm.conf", "ClusterName=x\nSlurmctldHost=no.such.host.invalid\n")
	expect(t, once(h, controller, s), check.Unknown, "the name of the controller no.such.host.invalid is not found")
	put(t, h.Roots.Etc+"/slurm/slurm.conf", "slurmctldhost=ctl(127.0.0.1) # this one\nSlurmctldPort=6817\n")
	assert.Equal(t, []string{"127.0.0.1"}, slurmctldHosts(h))
	f := again(h, controller, s, check.Finding{})
	expect(t, f, check.OK, "")
	assert.JSONEq(t, `["127.0.0.1"]`, string(f.Keep))
	s.Network.Interface = "ctl0" // the controller is on this node
	expect(t, again(h, controller, s, f), check.OK, "")

	// It answered before; nothing answers for this address (RFC 5737).
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	h.Kept = []byte(`["192.0.2.1"]`)
	s.Network.Controllers = []string{"192.0.2.1"}
	f = controller(ctx, h, s)
	assert.Contains(t, []check.Verdict{check.Warn, check.Fail, check.Unknown}, f.Verdict, f.Text) // by the machine's routes
	var p problems
	judgeWay(&p, "x", netip.MustParseAddr("127.0.0.1"), "eth7")
	expect(t, p.finding("good"), check.OK, "")
}

// Four controllers that are silent for some time each are done in that time.
func TestControllersAreLookedForAtOnce(t *testing.T) {
	hosts := []string{"a", "b", "c", "d"}
	var all sync.WaitGroup
	all.Add(len(hosts))
	done := make(chan []string, 1)
	go func() {
		done <- atOnce(hosts, func(host string) string {
			all.Done()
			all.Wait() // for the others
			return host + "!"
		})
	}()
	select {
	case got := <-done:
		assert.Equal(t, []string{"a!", "b!", "c!", "d!"}, got)
	case <-time.After(10 * time.Second):
		t.Fatal("one waits for another")
	}
}

// The kernel says by which interface it would send to a neighbour; nothing is sent.
func TestTheWayToTheController(t *testing.T) {
	all, err := net.Interfaces()
	require.NoError(t, err)
	for _, link := range all {
		addrs, _ := link.Addrs()
		for _, a := range addrs {
			prefix, err := netip.ParsePrefix(a.String())
			if err != nil || link.Flags&net.FlagLoopback != 0 || link.Flags&net.FlagUp == 0 || !prefix.Addr().Is4() || prefix.Bits() > 29 {
				continue
			}
			neighbour := prefix.Masked().Addr().Next()
			if neighbour == prefix.Addr() {
				neighbour = neighbour.Next()
			}
			var p problems
			judgeWay(&p, "ctl", neighbour, link.Name)
			expect(t, p.finding("good"), check.OK, "")
			judgeWay(&p, "ctl", neighbour, "other0")
			expect(t, p.finding("good"), check.Fail, "the controller ctl is reached by "+link.Name+" and not by other0")
			return
		}
	}
	t.Skip("this machine has no network with neighbours")
}

func TestChecksum(t *testing.T) {
	assert.Equal(t, ^uint16(0xddf2), checksum([]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7})) // the example of RFC 1071
}

func TestRDMAErrors(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	dir := port(t, h, "mlx5_0", "4: ACTIVE", "5: LinkUp", "400 Gb/sec")
	expect(t, once(h, rdmaErrors, s), check.NotApplicable, "")
	put(t, dir+"/counters/symbol_error", "5000\n")
	f := again(h, rdmaErrors, s, check.Finding{})
	expect(t, f, check.OK, "")
	put(t, dir+"/counters/symbol_error", "5050\n")
	f = again(h, rdmaErrors, s, f)
	expect(t, f, check.OK, "")
	put(t, dir+"/counters/symbol_error", "6000\n")
	expect(t, again(h, rdmaErrors, s, f), check.Warn, "RDMA port mlx5_0/1 has many errors (symbol_error)")
	put(t, dir+"/counters/symbol_error", "many\n")
	expect(t, again(h, rdmaErrors, s, f), check.NotApplicable, "")
}

func TestRDMAGIDs(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	dir := port(t, h, "mlx5_0", "4: ACTIVE", "5: LinkUp", "400 Gb/sec")
	expect(t, once(h, rdmaGIDs, s), check.NotApplicable, "")
	put(t, dir+"/link_layer", "Ethernet\n")
	expect(t, once(h, rdmaGIDs, s), check.Warn, "RDMA port mlx5_0/1 has no GID of RoCE version 2")
	put(t, dir+"/gid_attrs/types/0", "IB/RoCE v1\n")
	put(t, dir+"/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n")
	put(t, dir+"/gid_attrs/types/1", "RoCE v2\n")
	put(t, dir+"/gids/1", "0000:0000:0000:0000:0000:0000:0000:0000\n")
	expect(t, once(h, rdmaGIDs, s), check.Warn, "")
	put(t, dir+"/gids/1", "fe80:0000:0000:0000:0000:0000:0000:0001\n")
	expect(t, once(h, rdmaGIDs, s), check.OK, "")
}

func TestCgroups(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	expect(t, once(h, cgroups, s), check.NotApplicable, "")
	root := h.Roots.Sys + "/fs/cgroup"
	scope := root + "/system.slice/slurmstepd.scope"
	put(t, root+"/cgroup.controllers", "cpuset cpu io memory pids\n")
	put(t, scope+"/cgroup.controllers", "cpuset cpu memory\n")
	put(t, scope+"/job_17/step_0/user/cgroup.procs", "4711\n")
	put(t, scope+"/job_18/cgroup.procs", "\n")
	put(t, scope+"/job_sABC/cgroup.procs", "4712\n") // by SLUID
	stat(t, h, "50", "slurmstepd", "S", 0)
	put(t, h.Roots.Proc+"/50/cmdline", "slurmstepd: [17.0]\x00")
	f := again(h, cgroups, s, check.Finding{})
	expect(t, f, check.OK, "")
	expect(t, again(h, cgroups, s, f), check.OK, "")
	require.NoError(t, os.RemoveAll(h.Roots.Proc+"/50"))
	f = again(h, cgroups, s, f)
	expect(t, f, check.OK, "") // it may have ended just now
	f = again(h, cgroups, s, f)
	expect(t, f, check.Warn, "processes of jobs that have ended are left")
	assert.Equal(t, "job 17", f.Detail)
	h.Kept = nil
	put(t, scope+"/cgroup.controllers", "memory\n")
	expect(t, once(h, cgroups, s), check.Warn, "the cgroup controller cpu is not given to Slurm; the cgroup controller cpuset is not given to Slurm")
}

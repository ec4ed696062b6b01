// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/nhc"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/netsetup/fake/fakesys"
)

// vfNode is a node with a card, whose VF 0 is ens1f0v0 with mlx5_0v0. Both are named in its configurations.
type vfNode struct {
	t    *testing.T
	h    *check.Host
	s    *check.Settings
	tree *fakesys.Tree
	vf   string // PCI address
}

func newVFNode(t *testing.T) *vfNode {
	n := &vfNode{t: t, h: testHost(t), s: config.DefaultSettings(), tree: fakesys.New(t)}
	card := fakesys.Card{PCI: "0000:86:00.0", Under: "pci0000:80/0000:80:01.0", Name: "ens1f0", RDMA: "mlx5_0",
		TotalVFs: 8, NumVFs: 2}
	n.tree.AddCard(card)
	n.vf = card.VFAddress(0)
	n.h.Roots.Sys, n.h.Roots.Proc, n.h.Roots.Dev = n.tree.Sys, n.tree.Proc, n.tree.Dev
	n.s.Jail.State, n.s.Network.Config = n.h.Roots.Run+"/state", n.h.Roots.Etc+"/network.toml"
	n.s.Network.Ports = []string{"mlx5_0v0"}
	put(t, n.s.Network.Config, policyText)
	put(t, n.tree.Sys+"/class/infiniband_mad/abi_version", "5\n")
	put(t, n.tree.Proc+"/sys/kernel/random/boot_id", "now\n")
	return n
}

// write writes the journal of the VF.
func (n *vfNode) write(boot, rdma, quarantine string) {
	put(n.t, n.s.Jail.State+"/net/vf/"+n.vf+".json", fmt.Sprintf(`{"boot": %q, "job": "7", "netns": 1,
		"phase": "routes", "rail": "r", "pci": %q, "pf": "0000:86:00.0", "pf_name": "ens1f0", "vf": 0, "name": "net1",
		"table": 1, "link": "eth", "rdma": %q, "pkey": 0, "ufm": false, "slot": 0, "pools": {},
		"original": {"name": "ens1f0v0", "altnames": [], "mac": "", "mtu": 1500, "txqueue": 1000, "rdma": "mlx5_0v0",
		"knobs": {}}, "quarantined": %q}`, boot, n.vf, rdma, quarantine))
}

// show makes the devices below the PCI devices appear in the classes and in /proc/net/dev, as the kernel does.
func (n *vfNode) show() {
	require.NoError(n.t, os.RemoveAll(n.tree.Sys+"/class/infiniband"))
	require.NoError(n.t, os.MkdirAll(n.tree.Sys+"/class/infiniband", 0o755))
	table := "Inter-|\n face |bytes\n"
	for _, dir := range findMatches(n.tree.Sys, "bus/pci/devices/*") {
		dir, err := filepath.EvalSymlinks(dir)
		require.NoError(n.t, err)
		for _, rdma := range findMatches(dir, "infiniband/*") {
			os.Remove(rdma + "/device")
			require.NoError(n.t, os.Symlink(dir, rdma+"/device"))
			require.NoError(n.t, os.Symlink(rdma, n.tree.Sys+"/class/infiniband/"+filepath.Base(rdma)))
		}
		for _, net := range findMatches(dir, "net/*") {
			table += fmt.Sprintf("%s: 1 2\n", filepath.Base(net))
		}
	}
	put(n.t, n.tree.Proc+"/net/dev", table)
}

func (n *vfNode) remove(class, name string) {
	require.NoError(n.t, os.RemoveAll(n.tree.DevicePath(n.vf)+"/"+class+"/"+name))
}

func (n *vfNode) rename(class, from, to string) {
	dir := n.tree.DevicePath(n.vf) + "/" + class + "/"
	require.NoError(n.t, os.Rename(dir+from, dir+to))
}

func (n *vfNode) setPort(state, physical, flags string) {
	dir := n.tree.DevicePath(n.vf)
	put(n.t, dir+"/infiniband/mlx5_0v0/ports/1/state", state+"\n")
	put(n.t, dir+"/infiniband/mlx5_0v0/ports/1/phys_state", physical+"\n")
	if flags != "" {
		put(n.t, dir+"/net/ens1f0v0/flags", flags+"\n")
	}
}

// exchangeJournal makes the journal that of VF 1.
func (n *vfNode) exchangeJournal() {
	path := n.s.Jail.State + "/net/vf/" + n.vf + ".json"
	text, err := os.ReadFile(path)
	require.NoError(n.t, err)
	other := strings.NewReplacer(n.vf, "0000:86:01.1", "v0", "v1").Replace(string(text))
	put(n.t, n.s.Jail.State+"/net/vf/0000:86:01.1.json", other)
	require.NoError(n.t, os.Remove(path))
}

// judge returns what the three places that name the devices say: ports in [network], check_hw_ib and check_hw_eth.
func (n *vfNode) judge() string {
	n.show()
	words := []string{"ports " + once(n.h, rdmaPorts, n.s).Verdict.String()}
	for _, line := range []string{"check_hw_ib '' mlx5_0v0", "check_hw_eth ens1f0v0"} {
		name := strings.TrimPrefix(strings.Fields(line)[0], "check_hw_")
		words = append(words, name+" "+n.judgeNHC(line))
	}
	return strings.Join(words, ", ")
}

// judgeNHC returns the verdict of a line of nhc.conf.
func (n *vfNode) judgeNHC(line string) string {
	system := &nhc.System{Proc: n.h.Roots.Proc, Sys: n.h.Roots.Sys, Jobs: jobDevices{n.h, n.s}}
	l := nhc.Parse("* || "+line, "n1")[0]
	require.Empty(n.t, l.Problem)
	return checkNHCLine(n.t.Context(), &l, system).buildFinding("").Verdict.String()
}

// A VF and its RDMA device, by name, wherever they may be.
func TestNamedDevicesOfJobs(t *testing.T) {
	nstest.NeedRoot(t)
	const good, bad = "ports ok, ib ok, eth ok", "ports fail, ib fail, eth fail"
	exclusive := func(n *vfNode) { n.write("now", "exclusive", "") }
	shared := func(n *vfNode) { n.write("now", "shared", "") }
	moved := func(n *vfNode) { n.tree.MoveToJob(n.vf) }
	gone := func(n *vfNode) { n.tree.RemoveDevice(n.vf) }
	withoutNet := func(n *vfNode) { n.remove("net", "ens1f0v0") }
	withoutRDMA := func(n *vfNode) { n.remove("infiniband", "mlx5_0v0") }
	renamedRDMA := func(n *vfNode) { n.rename("infiniband", "mlx5_0v0", "x") }
	setDown := func(n *vfNode) { n.setPort("1: DOWN", "3: Disabled", "0x1002") }
	for name, c := range map[string]struct {
		do   []func(n *vfNode)
		want string
	}{
		"at home":                         {nil, good},
		"in a job, exclusive":             {[]func(*vfNode){exclusive, moved}, good},
		"in a job, shared":                {[]func(*vfNode){shared, withoutNet}, good},
		"in a job, shared, down":          {[]func(*vfNode){shared, setDown, withoutNet}, good},
		"being attached: RDMA first":      {[]func(*vfNode){exclusive, withoutRDMA}, good},
		"being attached: interface first": {[]func(*vfNode){exclusive, withoutNet}, good},
		"back under the job's name, before the sweep": {[]func(*vfNode){exclusive,
			func(n *vfNode) { n.rename("net", "ens1f0v0", "net1") }}, good},
		"released: set down until the next job": {[]func(*vfNode){setDown}, good},
		"set up, and down": {[]func(*vfNode){func(n *vfNode) { n.setPort("1: DOWN", "2: Polling", "0x1003") }},
			"ports fail, ib fail, eth ok"},
		"set down, of no policy": {[]func(*vfNode){setDown, func(n *vfNode) { put(n.t, n.s.Network.Config, "") }},
			"ports fail, ib fail, eth ok"},
		"away without a journal": {[]func(*vfNode){moved}, bad},
		"renamed":                {[]func(*vfNode){renamedRDMA, func(n *vfNode) { n.rename("net", "ens1f0v0", "x") }}, bad},
		"renamed in a job, shared: the RDMA device does not leave": {[]func(*vfNode){shared, renamedRDMA},
			"ports fail, ib fail, eth ok"},
		"gone for good":                    {[]func(*vfNode){gone}, bad},
		"gone for good while a job has it": {[]func(*vfNode){exclusive, gone}, bad},
		"of a job before the boot": {[]func(*vfNode){moved, func(n *vfNode) { n.write("before", "exclusive", "") }},
			bad},
		"in quarantine": {[]func(*vfNode){moved, func(n *vfNode) { n.write("now", "exclusive", "it hangs") }},
			"ports warn, ib warn, eth warn"},
		"a damaged journal": {[]func(*vfNode){moved,
			func(n *vfNode) { put(n.t, n.s.Jail.State+"/net/vf/"+n.vf+".json", "{") }},
			"ports unknown, ib unknown, eth unknown"},
		"journals that cannot be read": {[]func(*vfNode){moved,
			func(n *vfNode) { put(n.t, n.s.Jail.State+"/net/vf", "") }},
			"ports unknown, ib unknown, eth unknown"},
		"another VF in a job": {[]func(*vfNode){exclusive, moved, (*vfNode).exchangeJournal}, bad},
	} {
		n := newVFNode(t)
		for _, do := range c.do {
			do(n)
		}
		assert.Equal(t, c.want, n.judge(), name)
	}
}

// Other lines of nhc.conf that name a device, such as those about files in /sys.
func TestFilesOfDevicesOfJobs(t *testing.T) {
	nstest.NeedRoot(t)
	n := newVFNode(t)
	n.show()
	rdma, net := n.tree.Sys+"/class/infiniband/mlx5_0v0", n.tree.DevicePath(n.vf)+"/net/ens1f0v0"
	other := n.tree.Sys + "/class/infiniband/mlx5_9"
	for line, want := range map[string]string{ // a port that is down because a job has its VF
		"check_hw_ib '' mlx5_0v0:1": "ok", "check_hw_ib 400 mlx5_0v0": "ok", "check_hw_ib '' mlx5_0v0:2": "fail",
	} {
		n := newVFNode(t)
		n.write("now", "shared", "")
		n.setPort("1: DOWN", "3: Disabled", "")
		n.show()
		assert.Equal(t, want, n.judgeNHC(line), line)
		n.setPort("4: ACTIVE", "5: LinkUp", "")
		if strings.Contains(line, "400") { // another rate is a fault
			want = "fail"
		}
		assert.Equal(t, want, n.judgeNHC(line), line)
	}
	lines := []string{"check_file_test -d " + rdma, "check_file_test -e -r " + net + "/flags",
		"check_file_stat -u 0 " + net, "check_file_contents " + net + "/flags '0x1003'"}
	for _, line := range lines {
		assert.Equal(t, "ok", n.judgeNHC(line), line)
	}
	n.tree.MoveToJob(n.vf)
	n.show()
	for _, line := range lines {
		assert.Equal(t, "fail", n.judgeNHC(line), line)
	}
	n.write("now", "exclusive", "")
	for _, line := range lines {
		assert.Equal(t, "ok", n.judgeNHC(line), line)
	}
	assert.Equal(t, "fail", n.judgeNHC("check_file_test -d "+rdma+" "+other))
	assert.Equal(t, "fail", n.judgeNHC("check_file_test -d "+n.h.Roots.Etc+"/infiniband/mlx5_0v0"))
	assert.Equal(t, "ok", n.judgeNHC("check_file_test -! -e "+rdma))
}

// A job that gets the device after the first look, and one that returns it, are seen.
func TestDevicesThatMoveMeanwhile(t *testing.T) {
	nstest.NeedRoot(t)
	n := newVFNode(t)
	jobs := jobDevices{n.h, n.s}
	has, err := jobs.HaveInterface("ens1f0v0", func() bool { n.write("now", "none", ""); return false })
	require.NoError(t, err)
	assert.True(t, has, "attached meanwhile")
	require.NoError(t, os.RemoveAll(n.s.Jail.State))
	has, err = jobs.HaveInterface("ens1f0v0", func() bool { return true })
	require.NoError(t, err)
	assert.True(t, has, "returned meanwhile")
	has, err = jobs.HaveInterface("ens1f0v0", func() bool { return false })
	require.NoError(t, err)
	assert.False(t, has)
	_, missing := findPorts(n.h, n.s)
	assert.Equal(t, []string{"mlx5_0v0"}, missing)
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/netsetup/fake/fakesys"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/provision"
)

const networkText = `
[[policy]]
name = "left"
nic = { pf = ["ens1f0"] }
vfs = 2
trust = true
[[pool]]
name = "left"
subnet = "10.1.0.0/24"
directory = "DIR/leases"
[[rail]]
name = "rail0"
policy = "left"
pools = ["left"]
gres = "nic:rail0"
`

// netSite is a site with two network cards, one of which has a policy.
type netSite struct {
	*testSite
	tree   *fakesys.Tree
	kernel *provision.Kernel
}

var left = fakesys.Card{PCI: "0000:86:00.0", Under: "pci0000:80", Name: "ens1f0", NUMA: 1, TotalVFs: 8, RDMA: "mlx5_0"}

func newNetSite(t *testing.T, text string) *netSite {
	t.Helper()
	s := &netSite{testSite: newSite(t), tree: fakesys.New(t)}
	s.tree.AddCard(left)
	s.tree.AddCard(fakesys.Card{PCI: "0000:3b:00.0", Under: "pci0000:3a", Name: "ens2f0", TotalVFs: 4})
	s.writeFile(t, text)
	knobs := map[string]link.VFKnobs{}
	s.kernel = &provision.Kernel{
		Roots:    inventory.Roots{Sys: s.tree.Sys, Proc: s.tree.Proc, Dev: s.tree.Dev},
		Modprobe: s.tree.Modprobe, Patience: time.Minute, Write: s.tree.Write,
		ReadVF: func(pf string, number int) (link.VFKnobs, error) {
			v, known := knobs[fmt.Sprint(pf, number)]
			if !known {
				v = link.VFKnobs{MAC: make(net.HardwareAddr, 6), Trust: new(false)}
			}
			return v, nil
		},
		SetVF: func(pf string, number int, change link.VFKnobs) error {
			v := knobs[fmt.Sprint(pf, number)]
			if change.MAC != nil {
				v.MAC = change.MAC
			}
			if change.Trust != nil {
				v.Trust = change.Trust
			}
			knobs[fmt.Sprint(pf, number)] = v
			return nil
		},
	}
	return s
}

func (s *netSite) writeFile(t *testing.T, text string) {
	text = strings.ReplaceAll(text, "DIR", s.dir)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "network.toml"), []byte(text), 0o644))
}

// gojail runs a command line; standard error is apart.
func (s *netSite) gojail(args ...string) (out, problems string, err error) {
	var stdout, stderr bytes.Buffer
	cmd := newCommand(&localNode{cmdline.Node{Kernel: s.kernel}})
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SetArgs(append(s.flags, args...))
	err = cmd.Execute()
	return stdout.String(), stderr.String(), err
}

// damageJournal writes a journal that attach cannot read: it quarantines the VF.
func (s *netSite) damageJournal(t *testing.T, pci string) {
	dir := filepath.Join(s.dir, "state-n1", "net", "vf")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, pci+".json"), []byte("{"), 0o600))
}

var macs = regexp.MustCompile(`[0-9a-f]{2}(:[0-9a-f]{2}){5}\b`)

func TestVFApply(t *testing.T) {
	s := newNetSite(t, networkText)
	out, _, err := s.gojail("vf", "apply", "--dry-run")
	require.NoError(t, err)
	assert.Contains(t, out, "PF      WHAT")
	assert.Regexp(t, `ens1f0  VFs +0 +2 +0\n`, out)
	assert.NoDirExists(t, s.dir+"/state-n1", "--dry-run leaves nothing")

	out, _, err = s.gojail("vf", "apply")
	require.NoError(t, err)
	assert.Equal(t, `
ens1f0 (0000:86:00.0): drivers bind: 1 -> 0
ens1f0 (0000:86:00.0): VFs: 0 -> 2
ens1f0 (0000:86:00.0): VF 0 MAC: - -> MAC
ens1f0 (0000:86:00.0): VF 0 trust: - -> on
ens1f0 (0000:86:00.0): VF 1 MAC: - -> MAC
ens1f0 (0000:86:00.0): VF 1 trust: - -> on
ens1f0 (0000:86:00.0): drivers bind: - -> 1
ens1f0 (0000:86:00.0): VF 0 driver: - -> bound
ens1f0 (0000:86:00.0): VF 1 driver: - -> bound
`, "\n"+macs.ReplaceAllString(out, "MAC"))
	for _, name := range []string{"nic_0", "nic_1"} {
		info, err := os.Lstat(s.tree.Dev + "/gojail/" + name)
		require.NoError(t, err)
		assert.Equal(t, os.ModeDevice|os.ModeCharDevice|0o600, info.Mode())
	}
	out, _, err = s.gojail("vf", "apply")
	require.NoError(t, err)
	assert.Equal(t, "nothing to do: the node matches network.toml\n", out)
}

// TestWholeCardIsListed: a card that is given whole has a row, a file and a line of gres.conf like a VF, also while a job
// has it.
func TestWholeCardIsListed(t *testing.T) {
	s := newNetSite(t, strings.Replace(networkText, "vfs = 2\ntrust = true", "whole = true", 1))
	look := func(state string) {
		out, _, err := s.gojail("vf", "apply")
		require.NoError(t, err)
		assert.Equal(t, "nothing to do: the node matches network.toml\n", out)
		out, _, err = s.gojail("vf", "ls")
		require.NoError(t, err)
		assert.Regexp(t, `0000:86:00.0 .* rail0 +`+state, out)
		out, _, err = s.gojail("gres")
		require.NoError(t, err)
		assert.Contains(t, out, "NodeName=n1 Name=nic Type=rail0 File=/dev/gojail/nic_0")
		assert.FileExists(t, s.tree.Dev+"/gojail/nic_0")
		assert.NoFileExists(t, s.tree.Dev+"/gojail/nic_1")
	}
	look("- +free")
	s.tree.MoveToJob(left.PCI)
	dir := filepath.Join(s.dir, "state-n1", "net", "vf")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, left.PCI+".json"), []byte(`{"boot":"b","job":"7","phase":"reserve","rail":"rail0",`+
		`"pci":"0000:86:00.0","pf":"0000:86:00.0","vf":-1,"name":"net1","original":{"name":"ens1f0"}}`), 0o600))
	look("7 +in use")
}

func TestVFApplyWithoutAMatch(t *testing.T) {
	wrong := strings.Replace(networkText, "ens1f0", "ens9f9", 1)
	s := newNetSite(t, wrong)
	for _, args := range [][]string{{"vf", "apply"}, {"vf", "apply", "--dry-run"}} {
		out, _, err := s.gojail(args...)
		assert.Empty(t, out)
		assert.ErrorContains(t, err, `matches no network card of n1: it selects pf ens9f9, but the node has ens2f0 (root 0000:3b:00.0, vendor 15b3, device 1017), ens1f0 (root`)
		assert.ErrorContains(t, err, "; correct its nic, or set nodes to the nodes that it applies to")
	}
	s.writeFile(t, strings.Replace(wrong, "vfs = 2", "vfs = 2\nnodes = \"n2\"", 1))
	out, _, err := s.gojail("vf", "apply")
	require.NoError(t, err)
	assert.Equal(t, "nothing to do: no policy of network.toml applies to this node\n", out)
}

func TestVFApplyLeavesVFsOfJobsAlone(t *testing.T) {
	s := newNetSite(t, networkText)
	_, _, err := s.gojail("vf", "apply")
	require.NoError(t, err)
	s.damageJournal(t, left.VFAddress(1))
	s.writeFile(t, strings.Replace(networkText, "vfs = 2", "vfs = 3", 1))
	_, _, err = s.gojail("vf", "apply")
	require.ErrorContains(t, err, "ens1f0 has 2 VFs and should have 3, but VF 1 (0000:86:01.1) is in quarantine (")
	assert.ErrorContains(t, err, "); run: gojail sweep; or restore it by hand and run: gojail vf lift 0000:86:01.1")
	assert.True(t, s.tree.HasVF("ens1f0", 1))
	_, _, err = s.gojail("vf", "apply", "--dry-run")
	assert.ErrorContains(t, err, "is in quarantine")
}

// TestVFApplyWaits for who gives VFs to a job.
func TestVFApplyWaits(t *testing.T) {
	s := newNetSite(t, networkText)
	require.NoError(t, os.MkdirAll(s.dir+"/state-n1/net", 0o700))
	lock, err := os.Create(s.dir + "/state-n1/net/lock")
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_SH), "even one that shares it")
	says, problems, err := os.Pipe()
	require.NoError(t, err)
	defer says.Close()
	defer problems.Close()
	done := make(chan error, 1)
	go func() {
		cmd := newCommand(&localNode{cmdline.Node{Kernel: s.kernel}})
		cmd.SetOut(&bytes.Buffer{})
		cmd.SetErr(problems)
		cmd.SetArgs(append(s.flags, "vf", "apply"))
		done <- cmd.Execute()
	}()
	line := make([]byte, 200)
	n, err := says.Read(line)
	require.NoError(t, err)
	assert.Equal(t, "waiting for "+lock.Name()+": a launch or another gojail holds it\n", string(line[:n]))
	assert.False(t, s.tree.HasVF("ens1f0", 0))
	require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_UN))
	require.NoError(t, <-done)
	assert.True(t, s.tree.HasVF("ens1f0", 1))
}

// TestVFApplyFails: the card is as before, no files stand for VFs that are not there.
func TestVFApplyFails(t *testing.T) {
	s := newNetSite(t, networkText)
	s.tree.Fail["sriov_numvfs"] = unix.ENOMEM
	_, _, err := s.gojail("vf", "apply")
	require.ErrorContains(t, err, "pci=realloc")
	assert.NotContains(t, err.Error(), "run `gojail vf apply` first")
	assert.NoDirExists(t, s.tree.Dev+"/gojail")
	s.writeFile(t, networkText+"mistake = 1\n")
	_, _, err = s.gojail("vf", "apply")
	assert.ErrorContains(t, err, s.dir+"/network.toml:")
	require.NoError(t, os.Remove(s.dir+"/network.toml"))
	_, _, err = s.gojail("vf", "apply")
	assert.ErrorContains(t, err, "network.toml: cannot read the network configuration: no such file or directory")
}

func TestVFList(t *testing.T) {
	s := newNetSite(t, networkText)
	_, _, err := s.gojail("vf", "apply")
	require.NoError(t, err)
	s.damageJournal(t, left.VFAddress(1))
	out, _, err := s.gojail("vf", "ls")
	require.NoError(t, err)
	assert.Regexp(t, `^PF      VF  PCI           NETDEV    RDMA      NUMA  GPU  DISTANCE  RAIL   JOB  STATE
ens2f0  -   0000:3b:00.0  ens2f0    -         0     -    -         -      -    none of 4 VFs
ens1f0  0   0000:86:01.0  ens1f0v0  mlx5_0v0  1     -    -         rail0  -    free
ens1f0  1   0000:86:01.1  ens1f0v1  mlx5_0v1  1     -    -         rail0  -    quarantined: .*
$`, out)
	s.tree.MoveToJob(left.VFAddress(0))
	out, _, err = s.gojail("vf", "ls", "--json")
	require.NoError(t, err)
	var list struct{ VFs []inventory.Row }
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.Len(t, list.VFs, 3)
	assert.Equal(t, "elsewhere", list.VFs[1].State)
	assert.Equal(t, "quarantined", list.VFs[2].State)

	s.writeFile(t, networkText+"mistake = 1\n")
	out, problems, err := s.gojail("vf", "ls")
	require.NoError(t, err, "it is what one needs to write network.toml")
	assert.Contains(t, problems, "warning: rails are omitted: "+s.dir+"/network.toml:")
	assert.Contains(t, out, "0000:86:01.0")
	require.NoError(t, os.Remove(s.dir+"/network.toml"))
	_, problems, err = s.gojail("vf", "ls")
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestVFLift(t *testing.T) {
	s := newNetSite(t, networkText)
	_, _, err := s.gojail("vf", "apply")
	require.NoError(t, err)
	s.damageJournal(t, left.VFAddress(1))
	out, _, err := s.gojail("vf", "lift", left.VFAddress(1))
	require.NoError(t, err)
	assert.Equal(t, "VF 0000:86:01.1 is no longer quarantined\n", out)
	out, _, err = s.gojail("vf", "ls")
	require.NoError(t, err)
	assert.NotContains(t, out, "quarantined")
	_, _, err = s.gojail("vf", "lift")
	assert.ErrorContains(t, err, "gojail vf lift needs one argument: the PCI address of a VF, from: gojail vf ls")
}

func TestGRES(t *testing.T) {
	s := newNetSite(t, networkText)
	_, _, err := s.gojail("gres")
	assert.ErrorContains(t, err, "ens1f0 has 0 VFs and should have 2; run `gojail vf apply` first")
	_, _, err = s.gojail("vf", "apply")
	require.NoError(t, err)
	out, _, err := s.gojail("gres")
	require.NoError(t, err)
	assert.Equal(t, `# gres.conf, on every node:
NodeName=n1 Name=nic Type=rail0 File=/dev/gojail/nic_[0-1]
# slurm.conf: one GresTypes for all nodes; Gres belongs to the NodeName line of n1:
GresTypes=nic
NodeName=n1 Gres=nic:rail0:2
`, out)
	s.writeFile(t, strings.Replace(networkText, `gres = "nic:rail0"`, "", 1))
	out, _, err = s.gojail("gres")
	require.NoError(t, err)
	assert.Equal(t, "# n1 has no VF or GPU for Slurm: no rail of network.toml has gres, or none is on this node\n", out)
}

// listNetworkFindings returns the lines of `gojail check` about networks.
func (s *netSite) listNetworkFindings(t *testing.T) string {
	out, _, err := s.gojail("check")
	if err != nil {
		require.Equal(t, cmdline.SilentExit(1), err)
	}
	var lines []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "  network: ") {
			lines = append(lines, strings.ReplaceAll(line, s.dir, "DIR"))
		}
	}
	return strings.Join(lines, "")
}

func TestCheckNetwork(t *testing.T) {
	s := newNetSite(t, networkText)
	found := s.listNetworkFindings(t)
	assert.Contains(t, found, `OK    network: DIR/network.toml: policies: 1, rails: 1, pools: 1; default: none
WARN  network: DIR/network.toml: line 11: without [control], a job with a network cannot reach slurmctld: srun fails inside it
`)
	assert.Contains(t, found, "FAIL  network: VFs: 13 settings differ from DIR/network.toml; the first: ens1f0 (0000:86:00.0): drivers bind: 1 -> 0; gojail --config=DIR/gojail.toml --state=DIR/state-n1 --node=n1 vf apply\n")
	assert.Contains(t, found, `FAIL  network: pool "left": cannot stat DIR/leases: no such file or directory; mount its file system, or create it once for all nodes: mkdir -m 700 DIR/leases`+"\n")
	assert.NoDirExists(t, s.dir+"/leases")

	require.NoError(t, os.Mkdir(s.dir+"/leases", 0o755))
	assert.Contains(t, s.listNetworkFindings(t), "DIR/leases is accessible to others than its owner (mode 0755); run: chmod 700 DIR/leases")
	require.NoError(t, os.Chmod(s.dir+"/leases", 0o700))
	_, _, err := s.gojail("vf", "apply")
	require.NoError(t, err)
	found = s.listNetworkFindings(t)
	assert.Contains(t, found, "OK    network: VFs: as required by DIR/network.toml\n")
	assert.Contains(t, found, `OK    network: pool "left": DIR/leases exists and only root can write to it`+"\n")
	assert.Contains(t, found, "OK    network: ens1f0: link: up\n")
	assert.NotContains(t, found, "FAIL")

	s.damageJournal(t, left.VFAddress(1))
	assert.Regexp(t, "WARN  network: VF 0000:86:01.1 is quarantined: .*; run: gojail .* sweep, which retries; or repair the VF by hand and run: gojail .* vf lift 0000:86:01.1\n", s.listNetworkFindings(t))
}

func TestCheckOfAWrongNetwork(t *testing.T) {
	s := newNetSite(t, strings.Replace(networkText, "10.1.0.0/24", "10.1.0.1/24", 1))
	assert.Regexp(t, `^FAIL  network: no step in a jail starts: DIR/network.toml: line 9: .* has host bits.*\n$`, s.listNetworkFindings(t))
	s.writeFile(t, strings.Replace(networkText, "ens1f0", "ens9f9", 1))
	assert.Contains(t, s.listNetworkFindings(t), "matches no network card of n1")
	s.writeFile(t, strings.NewReplacer("ens1f0", "ens9f9", "vfs = 2", "vfs = 2\nnodes = \"n1\"").Replace(networkText))
	found := s.listNetworkFindings(t)
	assert.Regexp(t, "FAIL  network: policies: .* matches no network card of n1: .*; wanted: policies that fit this node; correct DIR/network.toml\n", found)
	assert.NotContains(t, found, "network: VFs:", "once is enough")
	s.writeFile(t, strings.Replace(networkText, `directory = "DIR/leases"`, `nodes = "n[2-9]"
per_node = 4`, 1))
	assert.Contains(t, s.listNetworkFindings(t), `FAIL  network: pool "left" has no addresses for this node, n1; add it at the end of nodes in DIR/network.toml, line 7`)
	require.NoError(t, os.Remove(s.dir+"/network.toml"))
	found = s.listNetworkFindings(t)
	assert.NotContains(t, found, "FAIL", "jobs need have no networks")
	assert.Contains(t, found, "OK    network: no DIR/network.toml; ens2f0: 0000:3b:00.0, driver mlx5_core, at most 4 VFs; no policy has it; vfs = 1 to 4 fits, and whole = true\n")
	s.flags = append(s.flags, "--network="+s.dir+"/other.toml")
	assert.Contains(t, s.listNetworkFindings(t), "FAIL  network: no step in a jail starts: DIR/other.toml: cannot read the network configuration: no such file or directory")
}

func TestSweepOfNetworks(t *testing.T) {
	s := newNetSite(t, networkText)
	_, _, err := s.gojail("sweep")
	assert.ErrorContains(t, err, "pool left: cannot open: cannot stat "+s.dir+"/leases", "addresses of before the boot may be leased there")
	require.NoError(t, os.Mkdir(s.dir+"/leases", 0o700))
	out, _, err := s.gojail("sweep")
	require.NoError(t, err)
	assert.Equal(t, "nothing to remove\n", out)
	s.damageJournal(t, left.VFAddress(1))
	out, _, err = s.gojail("sweep")
	require.NoError(t, err)
	kept := "^kept 0000:86:01.1: the journal .* is damaged: .*\n$"
	assert.Regexp(t, kept, out)

	// What can be done without network.toml is done.
	s.writeFile(t, "broken")
	out, _, err = s.gojail("sweep")
	assert.ErrorContains(t, err, "network.toml: line 1")
	assert.Regexp(t, kept, out)
}

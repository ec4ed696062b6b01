// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/hostlist"
	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/fake/killtest"
	"github.com/gojail/gojail/netsetup/inventory"
)

const attachOrder = "GOJAIL_VM_ATTACH"

func TestMain(m *testing.M) {
	if text := os.Getenv(attachOrder); text != "" {
		os.Exit(attachChild(text))
	}
	os.Exit(m.Run())
}

// newRailSite returns a site with a rail on each card, in a VLAN.
func newRailSite(t *testing.T, cards []card, vlan int, state string) attach.Site {
	t.Helper()
	var names []string
	for _, c := range cards {
		names = append(names, c.name)
	}
	s := newSite(names, vlan, state)
	host, err := os.Open("/proc/self/ns/net")
	require.NoError(t, err)
	t.Cleanup(func() { host.Close() })
	s.Host = int(host.Fd())
	return s
}

// newSite returns a site with a rail on each of the cards.
func newSite(cards []string, vlan int, state string) attach.Site {
	cfg := &config.Config{Path: "network.toml", Node: "n1", Default: "all"}
	cfg.Probe = config.Probe{Conflict: true, Gateway: true, Tries: 2, Timeout: 200 * time.Millisecond, Carrier: 30 * time.Second}
	for i, name := range cards {
		p := &config.Policy{Name: name, VFs: 3, Link: config.Ethernet, NIC: config.Selector{PF: []config.PFRange{{Name: name, Last: -1}}},
			VLAN: vlan, Trust: new(true), SpoofCheck: new(false), MTU: 1400}
		subnet := netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/24", i+1))
		nodes, _ := hostlist.Parse("n1")
		pool := &config.Pool{Name: name, Subnet: subnet, Nodes: nodes, PerNode: 3,
			Ranges: []config.Range{{First: subnet.Addr().Next(), Last: netip.MustParseAddr(fmt.Sprintf("10.%d.0.250", i+1))}}}
		cfg.Policies, cfg.Pools = append(cfg.Policies, p), append(cfg.Pools, pool)
		cfg.Rails = append(cfg.Rails, &config.Rail{Index: i, Name: fmt.Sprintf("rail%d", i), Policy: p, Pools: []*config.Pool{pool}, Labels: []string{"all"}, Table: 101 + i})
	}
	return attach.Site{Config: cfg, Cluster: "vm", State: state, Roots: inventory.Host}
}

// attachRails attaches a job's rails in a namespace of `ip netns`.
func attachRails(t *testing.T, s attach.Site, job, namespace string) (*attach.Network, error) {
	t.Helper()
	file, err := os.Open("/run/netns/" + namespace)
	require.NoError(t, err)
	defer file.Close()
	return attach.Attach(t.Context(), s, attach.Job{ID: job, Netns: int(file.Fd())})
}

// readSnapshot returns all of the cards and VFs that a job could change.
func readSnapshot(t *testing.T, all []card, vfs []vf, state string) string {
	t.Helper()
	var lines []string
	for _, c := range all {
		for _, line := range strings.Split(requireRun(t, "ip link show "+c.name), "\n") {
			if strings.Contains(line, "vf ") {
				lines = append(lines, line)
			}
		}
	}
	for _, v := range vfs {
		rdma, _ := tryRun("ls /sys/bus/pci/devices/" + v.pci + "/infiniband 2>/dev/null")
		lines = append(lines, fmt.Sprint(v.pci, " ", v.interfaceName(), " ", rdma, " ", requireRun(t, fmt.Sprintf("cd /sys/bus/pci/devices/%s/net/*/ && cat address mtu tx_queue_len flags", v.pci))))
	}
	for _, dir := range []string{"vf", "jobs"} {
		files, err := os.ReadDir(filepath.Join(state, dir))
		if err == nil {
			for _, f := range files {
				lines = append(lines, f.Name())
			}
		}
	}
	return strings.Join(lines, "\n")
}

func TestAttachOverVFs(t *testing.T) {
	all := findCards(t)
	var vfs []vf
	for _, c := range all {
		vfs = append(vfs, c.makeVFs(t, 3)...)
	}
	state := filepath.Join(t.TempDir(), "net")
	s := newRailSite(t, all, 100, state)
	before := readSnapshot(t, all, vfs, state)
	for _, name := range []string{"a", "b", "c"} {
		makeNamespace(t, name)
	}
	a, err := attachRails(t, s, "1", "a")
	require.NoError(t, err)
	b, err := attachRails(t, s, "2", "b")
	require.NoError(t, err)
	c, err := attachRails(t, newRailSite(t, all, 200, state), "3", "c")
	require.NoError(t, err)
	require.Len(t, a.Rails, 2)
	assert.Equal(t, "net1", a.Rails[0].Name)
	assert.Equal(t, vfs[0].pci, a.Rails[0].PCI)
	assert.Equal(t, 1400, a.Rails[0].MTU)
	t.Log(a.Env)
	for i := range a.Rails {
		assert.True(t, canPing("a", b.Rails[i].Addresses[0].Addr().String()), "the same rail")
		assert.False(t, canPing("a", c.Rails[i].Addresses[0].Addr().String()), "another VLAN")
	}
	_, err = attachRails(t, s, "4", "c")
	assert.ErrorContains(t, err, "no VF is free")
	requireRun(t, "ip -n a link set net1 down && ip -n a link set net1 address 02:00:00:aa:bb:cc mtu 1300 name own && ip -n a link set own up")
	assert.Contains(t, requireRun(t, "ip -n a link show own"), "02:00:00:aa:bb:cc")
	for _, job := range []string{"1", "2", "3"} {
		for range 2 {
			require.NoError(t, attach.Release(t.Context(), s, job))
		}
	}
	assert.Equal(t, before, readSnapshot(t, all, vfs, state))
	assert.NotContains(t, requireRun(t, "ip -n a rule"), "lookup 101")
}

func TestAttachFindsAConflict(t *testing.T) {
	all := findCards(t)[:1]
	vfs := all[0].makeVFs(t, 3)
	state := filepath.Join(t.TempDir(), "net")
	s := newRailSite(t, all, 0, state)
	s.Config.Probe.Tries = 50 // an answer ends it, however late it is on emulated CPUs
	before := readSnapshot(t, all, vfs[:1], state)
	makeNamespace(t, "other")
	makeNamespace(t, "job")
	vfs[2].moveInto(t, "other", "10.1.0.1")
	_, err := attachRails(t, s, "1", "job")
	assert.ErrorContains(t, err, "another machine uses the address")
	assert.ErrorContains(t, err, vfs[2].mac)
	assert.Equal(t, before, readSnapshot(t, all, vfs[:1], state))
}

// TestAttachOfAHolderThatIsKilled: the kernel brings VFs of two jobs back, under
// names of the jobs; Sweep makes them what they were.
func TestAttachOfAHolderThatIsKilled(t *testing.T) {
	all := findCards(t)
	var vfs []vf
	for _, c := range all {
		vfs = append(vfs, c.makeVFs(t, 2)...)
	}
	state := filepath.Join(t.TempDir(), "net")
	s := newRailSite(t, all, 100, state)
	before := readSnapshot(t, all, vfs, state)
	for _, job := range []string{"1", "2"} {
		holder := exec.Command("unshare", "--net", "sleep", "1h")
		require.NoError(t, holder.Start())
		path := fmt.Sprintf("/proc/%d/ns/net", holder.Process.Pid)
		mine, _ := os.Readlink("/proc/self/ns/net")
		waitFor(t, "the holder's namespace", func() bool { its, err := os.Readlink(path); return err == nil && its != mine })
		file, err := os.Open(path)
		require.NoError(t, err)
		_, err = attach.Attach(t.Context(), s, attach.Job{ID: job, Netns: int(file.Fd())})
		file.Close()
		require.NoError(t, err)
		enter := fmt.Sprintf("nsenter --net --target %d ", holder.Process.Pid)
		requireRun(t, enter+"ip link set net1 down && "+enter+"ip link set net1 address 02:00:00:aa:bb:0"+job+" mtu 1300")
		require.NoError(t, holder.Process.Kill())
		holder.Wait()
	}
	swept, err := attach.Sweep(t.Context(), s, func(string) bool { return false })
	require.NoError(t, err)
	assert.Equal(t, []string{"1", "2"}, swept.Released)
	assert.Empty(t, swept.Problems)
	assert.Equal(t, before, readSnapshot(t, all, vfs, state))
}

// TestAttachAndANameThatIsTaken: the PF trusts the VF no longer when its MAC, which
// the job had changed, can be set back.
func TestAttachAndANameThatIsTaken(t *testing.T) {
	all := findCards(t)[:1]
	vfs := all[0].makeVFs(t, 1)
	state := filepath.Join(t.TempDir(), "net")
	s := newRailSite(t, all, 100, state)
	before, name := readSnapshot(t, all, vfs, state), vfs[0].interfaceName()
	makeNamespace(t, "job")
	_, err := attachRails(t, s, "1", "job")
	require.NoError(t, err)
	requireRun(t, "ip -n job link set net1 down && ip -n job link set net1 address 02:00:00:aa:bb:cc")
	requireRun(t, "ip link add "+name+" type bridge")
	t.Cleanup(func() { tryRun("ip link del " + name + " type bridge") })
	err = attach.Release(t.Context(), s, "1")
	assert.ErrorContains(t, err, "is in quarantine")
	assert.ErrorContains(t, err, "the name is taken")
	assert.Contains(t, requireRun(t, "ip link show "+all[0].name), "trust off")
	requireRun(t, "ip link del "+name+" type bridge")
	swept, err := attach.Sweep(t.Context(), s, func(string) bool { return false })
	require.NoError(t, err)
	assert.Empty(t, swept.Problems)
	assert.Equal(t, before, readSnapshot(t, all, vfs, state))
}

type attachTask struct {
	Cards   []string
	State   string
	RDMA    config.RDMAMode
	Release bool
}

// attachChild attaches or releases job 1; descriptors 3 and 4 are the namespaces.
func attachChild(text string) int {
	var task attachTask
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		panic(err)
	}
	s := newSite(task.Cards, 100, task.State)
	s.Config.Policies[0].RDMA = task.RDMA
	s.Config.Probe.Conflict = false
	s.Host = 3
	var err error
	if task.Release {
		err = attach.Release(context.Background(), s, "1")
	} else {
		_, err = attach.Attach(context.Background(), s, attach.Job{ID: "1", Netns: 4})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// TestAttachKilledAnywhere: before each change of a file, with the job's namespace
// alive and then gone, and Sweep.
func TestAttachKilledAnywhere(t *testing.T) {
	all := findCards(t)[:1]
	killAttaches(t, all, all[0].makeVFs(t, 1), "", 1)
}

// killAttaches kills attaches at one change after the other, and returns how often an RDMA device was away
// then.
func killAttaches(t *testing.T, all []card, vfs []vf, rdma config.RDMAMode, every int) (away int) {
	t.Helper()
	state := filepath.Join(t.TempDir(), "net")
	s := newRailSite(t, all, 100, state)
	before := readSnapshot(t, all, vfs, state)
	t.Cleanup(func() { tryRun("ip netns del job") })
	for change, ended := 0, false; !ended; change += every {
		requireRun(t, "ip netns add job")
		text, err := json.Marshal(attachTask{Cards: []string{all[0].name}, State: state, RDMA: rdma})
		require.NoError(t, err)
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), attachOrder+"="+string(text))
		cmd.Stderr = os.Stderr
		for _, path := range []string{"/proc/self/ns/net", "/run/netns/job"} {
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			require.NoError(t, err)
			cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(fd), path))
		}
		call, err := killtest.Run(cmd, change)
		for _, f := range cmd.ExtraFiles {
			f.Close()
		}
		require.NoError(t, err)
		ended = call == ""
		if !strings.Contains(requireRun(t, "rdma dev"), "rxe") {
			away++
		}
		if change/every%2 == 0 {
			requireRun(t, "ip netns del job")
		}
		swept, err := attach.Sweep(t.Context(), s, func(string) bool { return false })
		require.NoError(t, err)
		assert.Empty(t, swept.Problems, "before change %d, %s", change, call)
		require.Equal(t, before, readSnapshot(t, all, vfs, state), "before change %d, %s", change, call)
		tryRun("ip netns del job")
		if ended {
			t.Log(change, "changes")
		}
	}
	return away
}

// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/tests/harness"
)

// newWholeSite returns the site of newRailSite with one rail, whose cards are given whole.
func newWholeSite(t *testing.T, c card, nic config.Selector, state string) attach.Site {
	t.Helper()
	s := newRailSite(t, []card{c}, 0, state)
	s.Config.Probe.Conflict, s.Config.Probe.Gateway = false, false
	p := s.Config.Policies[0]
	*p = config.Policy{Name: p.Name, Whole: true, NIC: nic, MTU: 1400, Link: config.Ethernet}
	return s
}

// describeCard returns what a job could change of an interface, by its PCI address. The carrier returns later.
func describeCard(t *testing.T, device string) string {
	t.Helper()
	return requireRun(t, "cd "+device+"/net/* && n=$(basename $PWD) && echo $n && cat address mtu tx_queue_len flags && "+
		"ip -o link show $n | grep -oE 'altname .*'; ip -o addr show $n | grep -v 'inet6 fe80' | cut -d: -f2-; ip route show dev $n | sed 's/ linkdown//'; ip route show table 200 | sed 's/ linkdown//'")
}

// TestWholeCards gives a PF, and then a VF that others made, as the cards that they are. A job changes what it can, and
// is released, or its namespace ends under it, after which the kernel brings the card back.
func TestWholeCards(t *testing.T) {
	all := findCards(t)
	c := all[0]
	pci := filepath.Base(c.device)
	byName := config.Selector{PF: []config.PFRange{{Name: "enp-whole-card-of-a-rail", Last: -1}}}
	requireRun(t, "ip link property add dev "+c.name+" altname enp-whole-card-of-a-rail")
	t.Cleanup(func() { tryRun("ip link property del dev " + c.name + " altname enp-whole-card-of-a-rail") })
	t.Run("PF", func(t *testing.T) {
		requireRun(t, fmt.Sprintf("ip link set %[1]s mtu 1450 txqueuelen 77 up && ip addr add 10.1.9.9/16 brd + dev %[1]s && ip route add 10.8.0.0/16 via 10.1.9.1 && ip route add default via 10.1.9.1 table 200", c.name))
		t.Cleanup(func() {
			requireRun(t, "ip addr flush dev "+c.name+"; ip link set "+c.name+" mtu 1500 txqueuelen 1000 down")
		})
		giveWhole(t, c, byName, pci)
	})
	t.Run("VF", func(t *testing.T) {
		vfs := c.makeVFs(t, 2)
		requireRun(t, "ip addr add 10.1.9.9/16 dev "+vfs[0].interfaceName()+" && ip link set "+vfs[0].interfaceName()+" up")
		// Both have one MAC: they are told apart by their PCI addresses.
		requireRun(t, fmt.Sprintf("ip link set %s vf 1 trust on && ip link set %s address %s", c.name, vfs[1].interfaceName(), vfs[0].mac))
		other := describeCard(t, "/sys/bus/pci/devices/"+vfs[1].pci)
		giveWhole(t, c, config.Selector{Root: []string{vfs[0].pci}}, vfs[0].pci)
		assert.Equal(t, other, describeCard(t, "/sys/bus/pci/devices/"+vfs[1].pci))
	})
}

func giveWhole(t *testing.T, c card, nic config.Selector, pci string) {
	state := filepath.Join(t.TempDir(), "net")
	s := newWholeSite(t, c, nic, state)
	device := "/sys/bus/pci/devices/" + pci
	before := describeCard(t, device)
	require.Contains(t, before, "10.1.9.9/16")
	makeNamespace(t, "job")
	got, err := attachRails(t, s, "1", "job")
	require.NoError(t, err)
	r := got.Rails[0]
	assert.Equal(t, []any{"net1", pci, -1, 1400}, []any{r.Name, r.PCI, r.VF, r.MTU})
	assert.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.1.0.1/24")}, r.Addresses)
	assert.Contains(t, requireRun(t, "ip -n job addr show net1"), "10.1.0.1/24")
	assert.Empty(t, requireRun(t, "ls "+device+"/net"), "it has left the node")
	makeNamespace(t, "job2")
	_, err = attachRails(t, s, "2", "job2")
	assert.ErrorContains(t, err, "no card is free ("+pci+": job 1)")
	const harm = "ip link set net1 down && ip link set net1 mtu 1300 txqueuelen 5 name own && ip link set own up"
	requireRun(t, strings.ReplaceAll(harm, "ip ", "ip -n job "))
	for range 2 {
		require.NoError(t, attach.Release(t.Context(), s, "1"))
		assert.Equal(t, before, describeCard(t, device))
	}

	holder := exec.Command("unshare", "--net", "sleep", "1h")
	require.NoError(t, holder.Start())
	path := fmt.Sprintf("/proc/%d/ns/net", holder.Process.Pid)
	mine, _ := os.Readlink("/proc/self/ns/net")
	waitFor(t, "the holder's namespace", func() bool { its, err := os.Readlink(path); return err == nil && its != mine })
	file, err := os.Open(path)
	require.NoError(t, err)
	_, err = attach.Attach(t.Context(), s, attach.Job{ID: "3", Netns: int(file.Fd())})
	file.Close()
	require.NoError(t, err)
	requireRun(t, fmt.Sprintf("nsenter --net --target %d sh -c %q", holder.Process.Pid, harm))
	require.NoError(t, holder.Process.Kill())
	holder.Wait()
	swept, err := attach.Sweep(t.Context(), s, func(string) bool { return false })
	require.NoError(t, err)
	assert.Empty(t, swept.Problems)
	assert.Equal(t, before, describeCard(t, device))

	requireRun(t, "ip route add default via 10.1.9.1")
	defer tryRun("ip route del default via 10.1.9.1")
	_, err = attachRails(t, s, "4", "job")
	assert.ErrorContains(t, err, "the node uses it: a default route leads through ")
}

// TestJobHasAWholeCard gives node n1 the first card and n2 the second one, as Slurm counts them.
func TestJobHasAWholeCard(t *testing.T) {
	all := findCards(t)
	requireRun(t, "ip link add "+controlCard+" type bridge && ip addr add 203.0.113.250/24 dev "+controlCard+" && ip link set "+controlCard+" up && sysctl -qw net.ipv4.ip_forward=1")
	t.Cleanup(func() {
		requireRun(t, "ip link del "+controlCard+"; ip addr flush dev lo; ip addr add 127.0.0.1/8 dev lo")
	})
	var text strings.Builder
	for i, c := range all {
		fmt.Fprintf(&text, "[[policy]]\nname = \"card%[1]d\"\nnodes = \"n%[2]d\"\nnic = { pf = [%[3]q] }\nwhole = true\nmtu = 1400\n"+
			"[[pool]]\nname = \"p%[1]d\"\nsubnet = \"10.%[1]d.0.0/24\"\nnodes = \"n%[2]d\"\nper_node = 1\n"+
			"[[rail]]\nname = \"rail%[1]d\"\npolicy = \"card%[1]d\"\npools = [\"p%[1]d\"]\nlabels = [\"ai\"]\ngres = \"nic:rail%[1]d\"\n", i, i+1, c.name)
	}
	text.WriteString("[[pool]]\nname = \"control\"\nsubnet = \"203.0.113.0/24\"\nnodes = \"n[1-2]\"\nper_node = 4\n" +
		"[control]\npool = \"control\"\ninterface = \"" + controlCard + "\"\n[probe]\ngateway = false\n")
	requireRun(t, "ip addr add 10.77.0.1/24 dev "+all[0].name+" && ip link set "+all[0].name+" up")
	t.Cleanup(func() { tryRun("ip addr flush dev " + all[0].name + "; ip link set " + all[0].name + " down") })
	before := describeCard(t, all[0].device)
	c := harness.Start(t, harness.Options{Plugin: true, HostNet: true, Jails: []string{"debian"},
		Files: map[string]string{"/etc/gojail/network.toml": text.String()}})
	r := c.Gojail("n1", "vf", "apply")
	require.Zero(t, r.Code, r)
	assert.Contains(t, r.Stdout, "nothing to do")
	pci := filepath.Base(all[0].device)
	r = c.Gojail("n1", "gres")
	require.Zero(t, r.Code, r)
	assert.Contains(t, r.Stdout, "Name=nic Type=rail0 File=/dev/gojail/nic_0")
	assert.Regexp(t, pci+" .* rail0 +- +free", c.Gojail("n1", "vf", "ls").Stdout)
	assert.Contains(t, c.Gojail("n1", "check").Stdout, all[0].name+": given whole: the node does not use it")

	submit := c.Do(harness.Command{User: harness.Alice, Args: []string{"sbatch", "--parsable", "-wn1", "--jail=debian", "--jail-net=ai",
		"--chdir=/tmp", "--output=/home/alice/whole.out"}, Stdin: "#!/bin/sh\nsrun cat /sys/class/net/net1/mtu /sys/class/net/net1/device/uevent\nsleep 600\n"})
	require.Zero(t, submit.Code, submit)
	job := strings.TrimSpace(submit.Stdout)
	waitFor(t, "the card in the job", func() bool { return !strings.Contains(requireRun(t, "ls "+all[0].device+"/net"), all[0].name) })
	waitFor(t, "the output", func() bool {
		out, _ := c.ReadAnywhere("/home/alice/whole.out")
		return strings.Contains(out, "1400") && strings.Contains(out, pci)
	})
	assert.Regexp(t, pci+" .* rail0 +"+job+" +in use", c.Gojail("n1", "vf", "ls").Stdout)
	assert.Contains(t, c.Gojail("n1", "check").Stdout, "given whole: a job has it")
	r = c.Gojail("n1", "vf", "apply")
	require.Zero(t, r.Code, r)
	require.Zero(t, c.Gojail("n1", "gres").Code, "also while the card is away")
	require.Contains(t, c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-net=ai", "true").Stderr, "no card is free ("+pci+": job "+job+")")
	c.Run("root", "scancel", job)
	waitFor(t, "the card at home", func() bool { return strings.Contains(requireRun(t, "ls "+all[0].device+"/net"), all[0].name) })
	waitFor(t, "the card as before", func() bool { return describeCard(t, all[0].device) == before })
	assert.True(t, c.WaitIdle(), c.Drained())
}

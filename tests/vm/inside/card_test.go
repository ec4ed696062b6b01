// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/vm"
)

// card is a network card with SR-IOV, a rail.
type card struct {
	name   string // of the PF's interface
	device string // the PF's directory in sysfs
}

// vf is a virtual function, identified by its PCI address.
type vf struct {
	pci string
	mac string // that the PF gave it
}

// findCards returns the guest's two cards by their PCI addresses, without VFs.
func findCards(t *testing.T) []card {
	t.Helper()
	if os.Getenv(vm.GuestVariable) == "" {
		t.Skip("runs in the VM: make test-vm")
	}
	var all []card
	found, err := filepath.Glob("/sys/bus/pci/devices/*/sriov_numvfs")
	require.NoError(t, err)
	for _, file := range found {
		device := filepath.Dir(file)
		names, err := os.ReadDir(filepath.Join(device, "net"))
		require.NoError(t, err)
		all = append(all, card{names[0].Name(), device})
	}
	require.Len(t, all, 2, "network cards with SR-IOV")
	return all
}

// requireRun runs a command that must succeed.
func requireRun(t *testing.T, line string) string {
	t.Helper()
	out, err := tryRun(line)
	require.NoError(t, err, "%s: %s", line, out)
	return out
}

func tryRun(line string) (string, error) {
	out, err := exec.Command("sh", "-c", line).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func requireWrite(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
}

// makeVFs creates n VFs with MACs of their own until the end of the test. The order matters: a VF asks for
// its MAC when its driver takes it, so the drivers are bound last. The PF is set up after it has the MACs,
// since an igb that is up resets its VFs for each MAC, one after the other.
func (c card) makeVFs(t *testing.T, n int) []vf {
	t.Helper()
	requireRun(t, "ip link set "+c.name+" down")
	requireWrite(t, c.device+"/sriov_drivers_autoprobe", "0")
	requireWrite(t, c.device+"/sriov_numvfs", strconv.Itoa(n))
	t.Cleanup(func() { requireWrite(t, c.device+"/sriov_numvfs", "0") })
	pf := requireRun(t, "cat /sys/class/net/"+c.name+"/address")
	var vfs []vf
	for i := range n {
		link, err := os.Readlink(fmt.Sprintf("%s/virtfn%d", c.device, i))
		require.NoError(t, err)
		mac := fmt.Sprintf("%s:f%x", pf[:len(pf)-3], i)
		vfs = append(vfs, vf{filepath.Base(link), mac})
		requireRun(t, fmt.Sprintf("ip link set %s vf %d mac %s", c.name, i, mac))
	}
	requireRun(t, "ip link set "+c.name+" up")
	requireWrite(t, c.device+"/sriov_drivers_autoprobe", "1")
	for _, v := range vfs {
		requireWrite(t, "/sys/bus/pci/drivers_probe", v.pci)
	}
	return vfs
}

// interfaceName returns the VF's interface in the guest's own network namespace, "" when it is elsewhere.
func (v vf) interfaceName() string {
	entries, _ := os.ReadDir(filepath.Join("/sys/bus/pci/devices", v.pci, "net"))
	if len(entries) == 0 {
		return ""
	}
	return entries[0].Name()
}

// makeNamespace creates a network namespace until the end of the test.
func makeNamespace(t *testing.T, name string) {
	t.Helper()
	requireRun(t, "ip netns add "+name+" && ip -n "+name+" link set lo up")
	t.Cleanup(func() { tryRun("ip netns del " + name) })
}

// moveInto moves a VF into a namespace as vf0, with an address, and sets it up.
func (v vf) moveInto(t *testing.T, namespace, address string) {
	t.Helper()
	requireRun(t, fmt.Sprintf("ip link set %s netns %s name vf0 && ip -n %[2]s addr add %s/24 dev vf0 && ip -n %[2]s link set vf0 up", v.interfaceName(), namespace, address))
	waitFor(t, "the link of "+v.pci, func() bool {
		out, _ := tryRun("ip -n " + namespace + " link show vf0")
		return strings.Contains(out, "LOWER_UP")
	})
}

// waitForReturn waits for the VF in the guest's own namespace, to which the kernel returns it later.
func (v vf) waitForReturn(t *testing.T) {
	t.Helper()
	waitFor(t, v.pci+" at home", func() bool { return v.interfaceName() != "" })
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	require.Eventually(t, done, 3*time.Minute, 20*time.Millisecond, what)
}

// canPing reports whether one of a few pings from a namespace is answered.
func canPing(namespace, address string) bool {
	_, err := tryRun("ip netns exec " + namespace + " ping -c 5 -i 0.2 -W 1 " + address)
	return err == nil
}

// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// addRDMADevice adds an RDMA device to an interface until the end of the test.
func addRDMADevice(t *testing.T, kind, name, over, namespace string) {
	t.Helper()
	enter := ""
	if namespace != "" {
		enter = "ip netns exec " + namespace + " "
	}
	requireRun(t, enter+"rdma link add "+name+" type "+kind+" netdev "+over)
	t.Cleanup(func() { tryRun("rdma link del " + name) })
}

func TestSoftRoCEOnAVF(t *testing.T) {
	v := findCards(t)[0].makeVFs(t, 1)[0]
	name := v.interfaceName()
	requireRun(t, "ip addr add 192.0.2.1/24 dev "+name+" && ip link set "+name+" up")
	addRDMADevice(t, "rxe", "rxe0", name, "")
	node := "/dev/infiniband/uverbs0"
	info, err := os.Stat(node)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&os.ModeCharDevice, node)
	assert.Equal(t, name, requireRun(t, "cat /sys/class/infiniband/rxe0/parent"))
	waitFor(t, "the port of rxe0", func() bool {
		out, _ := tryRun("cat /sys/class/infiniband/rxe0/ports/1/state")
		return out == "4: ACTIVE"
	})
	assert.Contains(t, requireRun(t, "ibv_devices"), "rxe0")
	// Server and client on the same device: both ends in one network namespace.
	out := requireRun(t, "ib_read_lat -d rxe0 -n 100 >/tmp/server 2>&1 & "+
		"for i in $(seq 100); do ib_read_lat -d rxe0 -n 100 192.0.2.1 && break; sleep .1; done; wait")
	assert.Contains(t, out, "t_typical")
	requireRun(t, "rdma link del rxe0")
	assert.NoFileExists(t, node)
}

// TestSoftRoCEGoesWithItsVF: the kernel deletes an rxe device whose interface changes namespaces.
func TestSoftRoCEGoesWithItsVF(t *testing.T) {
	v := findCards(t)[0].makeVFs(t, 1)[0]
	addRDMADevice(t, "rxe", "rxe0", v.interfaceName(), "")
	makeNamespace(t, "job")
	v.moveInto(t, "job", "192.0.2.1")
	waitFor(t, "the end of rxe0", func() bool { _, err := os.Stat("/sys/class/infiniband/rxe0"); return err != nil })
}

// TestSoftRoCEMovesOnceItsVFIsThere: a device is made in the guest's own
// namespace, wherever its interface is, and moved by a command of its own.
func TestSoftRoCEMovesOnceItsVFIsThere(t *testing.T) {
	v := findCards(t)[0].makeVFs(t, 1)[0]
	needOwnModules(t)
	requireRun(t, "rdma system set netns exclusive")
	t.Cleanup(func() {
		waitFor(t, "the end of the namespaces", func() bool { _, err := tryRun("rdma system set netns shared"); return err == nil })
	})
	makeNamespace(t, "job")
	v.moveInto(t, "job", "192.0.2.1")
	addRDMADevice(t, "rxe", "rxe0", "vf0", "job")
	assert.FileExists(t, "/sys/class/infiniband/rxe0/parent")
	requireRun(t, "rdma dev set rxe0 netns job")
	assert.NoDirExists(t, "/sys/class/infiniband/rxe0")
	assert.Empty(t, requireRun(t, "rdma dev"))
	assert.Contains(t, requireRun(t, "ip netns exec job rdma dev"), "rxe0")
	requireRun(t, "ip netns del job")
	v.waitForReturn(t)
	assert.Empty(t, requireRun(t, "rdma dev"), "it ends with its namespace")
}

// needOwnModules skips a test that needs more than Debian's kernel has.
func needOwnModules(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/sys/module/siw"); err != nil {
		t.Skip("needs siw and a patched rxe, which tests/vm/modules builds where it can")
	}
}

// TestSoftIWARPBetweenNamespaces is the one soft RDMA whose traffic works between namespaces.
func TestSoftIWARPBetweenNamespaces(t *testing.T) {
	rail := findCards(t)[0]
	needOwnModules(t)
	vfs := rail.makeVFs(t, 2)
	for i, side := range []string{"a", "b"} {
		makeNamespace(t, side)
		vfs[i].moveInto(t, side, fmt.Sprintf("192.0.2.1%d", i))
		addRDMADevice(t, "siw", "siw"+side, "vf0", side)
	}
	server := "ip netns exec a timeout 60 rping -s -a 192.0.2.10 -C 5"
	client := "ip netns exec b timeout 30 rping -c -a 192.0.2.10 -C 5 -v"
	out := requireRun(t, server+" >/tmp/server 2>&1 & for i in $(seq 50); do "+client+" && break; sleep .2; done; wait")
	assert.Contains(t, out, "ping data: rdma-ping-4")
}

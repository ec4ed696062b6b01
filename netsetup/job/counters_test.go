// SPDX-License-Identifier: Apache-2.0

package job

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/attach"
)

// TestCountersOfANamespace reads what the kernel counts for interfaces in another namespace, which stand in for
// VFs and have no PCI device.
func TestCountersOfANamespace(t *testing.T) {
	f := newFabric(t, 2)
	f.check(long) // packets between the two
	fd, err := unix.FcntlInt(uintptr(f.nodes[0]), unix.F_DUPFD_CLOEXEC, 0)
	require.NoError(t, err)
	namespace := os.NewFile(uintptr(fd), "namespace")
	defer namespace.Close()
	counters, err := readCounters(namespace, []attach.RailNet{{Rail: "rail0", Name: "net1", PCI: "0000:86:00.2"}, {Rail: "rail1", Name: "net9"}})
	assert.EqualError(t, err, "rail rail1: the job has no interface net9")
	require.Contains(t, counters, "rail0")
	got := counters["rail0"].Interface
	assert.Len(t, got, len(interfaceCounters))
	assert.GreaterOrEqual(t, got["tx_packets"], uint64(1))
	assert.GreaterOrEqual(t, got["rx_bytes"], uint64(64))
	assert.Nil(t, counters["rail0"].Ports)
	assert.NotContains(t, counters, "rail1")
}

// TestCountersOfADevice uses a fake sysfs: it has VFs and RDMA devices.
func TestCountersOfADevice(t *testing.T) {
	sys := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(sys, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("class/net/net1/statistics/rx_bytes", "17\n")
	write("class/net/net1/statistics/tx_bytes", "rubbish\n")
	write("class/infiniband/mlx5_3/ports/1/counters/port_rcv_data", "4611686018427387903\n")
	write("class/infiniband/mlx5_3/ports/1/counters/port_rcv_packets", "5\n")
	write("class/infiniband/mlx5_3/ports/2/state", "4: ACTIVE\n")
	require.NoError(t, os.Symlink("../../../0000:86:00.2", filepath.Join(sys, "class/net/net1/device")))
	c, err := readRailCounters(sys, &attach.RailNet{Rail: "r", Name: "net1", PCI: "0000:86:00.2", RDMA: "mlx5_3"})
	require.NoError(t, err)
	assert.Equal(t, Counters{Interface: map[string]uint64{"rx_bytes": 17}, Ports: map[string]map[string]uint64{"1": {"port_rcv_data": 18446744073709551612, "port_rcv_packets": 5}}}, c)
	_, err = readRailCounters(sys, &attach.RailNet{Rail: "r", Name: "net1", PCI: "0000:86:00.3"})
	assert.EqualError(t, err, "rail r: net1 is 0000:86:00.2, not 0000:86:00.3")
	write("class/infiniband/mlx5_4/ports/1/counters/port_rcv_packets", "6\n")
	c, err = readRailCounters(sys, &attach.RailNet{Rail: "r", PCI: "0000:86:00.2", RDMA: "mlx5_3", RDMAMore: []string{"mlx5_4"}})
	require.NoError(t, err)
	assert.Nil(t, c.Interface, "RDMA alone")
	assert.Equal(t, uint64(6), c.Ports["mlx5_4/1"]["port_rcv_packets"])
}

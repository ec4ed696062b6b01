// SPDX-License-Identifier: Apache-2.0

package job

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/statefile"
	"github.com/gojail/gojail/netsetup/attach"
)

// TestUseOfANamespace: what a job's rails carried is what was counted since they were attached, not since the driver was bound.
func TestUseOfANamespace(t *testing.T) {
	f := newFabric(t, 2)
	f.check(long) // packets of before
	fd, err := unix.FcntlInt(uintptr(f.nodes[0]), unix.F_DUPFD_CLOEXEC, 0)
	require.NoError(t, err)
	namespace := os.NewFile(uintptr(fd), "namespace")
	defer namespace.Close()
	rails := []attach.RailNet{{Rail: "rail0", Name: "net1", PCI: "0000:86:00.2"}, {Rail: "rail1", Name: "net2", PCI: "0000:86:00.3"}}
	dir := t.TempDir()
	path := filepath.Join(dir, ".net.counters")
	require.NoError(t, os.MkdirAll(filepath.Join(attach.StateDir(dir), "jobs"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(attach.StateDir(dir), "jobs/17.json"),
		[]byte(`{"job":"17","boot":"b","network":{"job":"17","rails":[{"rail":"rail0","name":"net1","pci":"0000:86:00.2"},{"rail":"rail1","name":"net2","pci":"0000:86:00.3"}]}}`), 0o600))

	_, err = readUse(dir, "17", path, namespace)
	assert.EqualError(t, err, "the counters of 0000:86:00.2 at the start of job 17 are unknown")
	_, err = readUse(dir, "18", path, namespace)
	assert.EqualError(t, err, "read the network of job 18: file does not exist")

	_, err = ReadCounters(path, namespace, rails[:1])
	assert.EqualError(t, err, "rail rail0: the counters of 0000:86:00.2 at the start of the job are unknown")
	require.NoError(t, noteCounters(path, namespace, rails[:1]))
	before, err := readCounters(namespace, rails[:1])
	require.NoError(t, err)
	require.NoError(t, noteCounters(path, namespace, rails), "attached once more")
	f.check(long)
	after, err := readCounters(namespace, rails)
	require.NoError(t, err)
	use, err := readUse(dir, "17", path, namespace)
	require.NoError(t, err)
	sent := after["rail0"].Interface["tx_bytes"] - before["rail0"].Interface["tx_bytes"]
	assert.GreaterOrEqual(t, use.Sent, sent)
	assert.NotZero(t, sent)
	assert.NotZero(t, use.Received)
	assert.Less(t, use.Sent, after["rail0"].Interface["tx_bytes"]+after["rail1"].Interface["tx_bytes"])
	assert.Regexp(t, `^network_received=[1-9]\d* network_sent=[1-9]\d*$`, use.String())

	own, err := ReadCounters(path, namespace, append(rails, attach.RailNet{Rail: "rail9", Name: "net9"}))
	assert.EqualError(t, err, "rail rail9: the job has no interface net9", "the others are known")
	require.Contains(t, own, "rail1")
	assert.Len(t, own["rail0"].Interface, len(interfaceCounters))
	assert.GreaterOrEqual(t, own["rail0"].Interface["tx_bytes"], sent)
	assert.Less(t, own["rail0"].Interface["tx_bytes"], after["rail0"].Interface["tx_bytes"], "not those of before")

	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = ReadCounters(path, namespace, rails)
	assert.ErrorContains(t, err, path+" is damaged")
	_, err = readUse(dir, "17", path, namespace)
	assert.ErrorContains(t, err, path+" is damaged")
}

func TestUseOfPorts(t *testing.T) {
	counters := Counters{Interface: map[string]uint64{"rx_bytes": 1, "tx_bytes": 2},
		Ports: map[string]map[string]uint64{"1": {"port_rcv_data": 40, "port_xmit_data": 80}, "2": {"port_rcv_data": 4}}}
	sum := traffic{Sent: 7}
	sum.add(counters.traffic(), traffic{Received: 1, Sent: 5, RDMASent: 30})
	assert.Equal(t, traffic{Received: 0, Sent: 9, RDMAReceived: 44, RDMASent: 50, HasRDMA: true}, sum, "tx_bytes began again")
	assert.Equal(t, "network_received=0 network_sent=9 rdma_received=44 rdma_sent=50", sum.String())

	path := filepath.Join(t.TempDir(), "counters")
	require.NoError(t, statefile.Write(path, map[string]traffic{"0000:86:00.2": sum}))
	noted, err := readNotes(path)
	require.NoError(t, err)
	assert.Equal(t, map[string]note{"0000:86:00.2": {traffic: sum}}, noted, "of an earlier version")
	require.NoError(t, statefile.Write(path, map[string]note{"0000:86:00.2": {sum, counters}}))
	noted, err = readNotes(path)
	require.NoError(t, err)
	assert.Equal(t, map[string]note{"0000:86:00.2": {sum, counters}}, noted)
	earlier := map[string]traffic{}
	require.NoError(t, statefile.Read(path, &earlier, nil))
	assert.Equal(t, map[string]traffic{"0000:86:00.2": sum}, earlier, "an earlier version reads it")
}

// TestCountersOfTheJob: each counter begins with the job, and one that is not known of its start is missing.
func TestCountersOfTheJob(t *testing.T) {
	begin := Counters{Interface: map[string]uint64{"rx_bytes": 100, "tx_bytes": 50, "rx_dropped": 2},
		Ports: map[string]map[string]uint64{"1": {"port_rcv_data": 40, "port_xmit_wait": 7}}}
	now := Counters{Interface: map[string]uint64{"rx_bytes": 107, "tx_bytes": 20, "rx_dropped": 2, "rx_errors": 9},
		Ports: map[string]map[string]uint64{"1": {"port_rcv_data": 44, "port_xmit_wait": 7}, "2": {"port_rcv_data": 4}}}
	assert.Equal(t, Counters{Interface: map[string]uint64{"rx_bytes": 7, "tx_bytes": 20, "rx_dropped": 0},
		Ports: map[string]map[string]uint64{"1": {"port_rcv_data": 4, "port_xmit_wait": 0}}}, now.since(begin), "tx_bytes began again")
	assert.Equal(t, Counters{Interface: map[string]uint64{}}, now.since(Counters{}), "noted by an earlier version")
}

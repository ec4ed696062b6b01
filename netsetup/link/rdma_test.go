// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestRDMAFilesOfADevice(t *testing.T) {
	sys := t.TempDir()
	write := func(path, text string) {
		path = filepath.Join(sys, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	write("bus/pci/devices/0000:86:00.2/infiniband/mlx5_3/node_guid", "0c42:a103:0065:ac1e\n")
	write("class/infiniband_verbs/abi_version", "6\n")
	for class, name := range map[string]string{"infiniband_verbs/uverbs": "231:%d", "infiniband_mad/umad": "231:%d", "infiniband_mad/issm": "231:%d"} {
		for i, device := range []string{"mlx5_0", "mlx5_3"} {
			dir := fmt.Sprintf("class/%s%d/", class, i)
			write(dir+"ibdev", device+"\n")
			write(dir+"dev", fmt.Sprintf(name+"\n", 192+i))
		}
	}
	device, err := FindRDMA(sys, "0000:86:00.2")
	require.NoError(t, err)
	assert.Equal(t, []string{"mlx5_3"}, device)
	files, err := ListRDMAFiles(sys, device[0])
	require.NoError(t, err)
	assert.Equal(t, []CharDevice{{"infiniband/uverbs1", 231, 193}, {"infiniband/issm1", 231, 193}, {"infiniband/umad1", 231, 193}}, files)
	write("class/misc/rdma_cm/dev", "10:122\n")
	files, err = ListRDMAFiles(sys, device[0])
	require.NoError(t, err)
	assert.Equal(t, CharDevice{"infiniband/rdma_cm", 10, 122}, files[3])
	assert.Equal(t, unix.Mkdev(10, 122), files[3].Number())

	_, err = ListRDMAFiles(sys, "mlx5_9")
	assert.ErrorIs(t, err, ErrNotFound)
	_, err = FindRDMA(sys, "0000:86:00.3")
	assert.ErrorIs(t, err, ErrNotFound)
	write("bus/pci/devices/0000:86:00.2/infiniband/mlx5_4/node_guid", "")
	device, err = FindRDMA(sys, "0000:86:00.2")
	require.NoError(t, err)
	assert.Equal(t, []string{"mlx5_3", "mlx5_4"}, device)
	write("class/infiniband_verbs/uverbs1/dev", "x")
	_, err = ListRDMAFiles(sys, device[0])
	assert.ErrorContains(t, err, "is not MAJOR:MINOR")
}

func TestGUIDAsInSysfs(t *testing.T) {
	assert.Equal(t, "0c42:a103:0065:ac1e", toSysfsGUID("1e:ac:65:00:03:a1:42:0c"))
	assert.Equal(t, "x", toSysfsGUID("x"))
}

func TestRDMAWithoutRDMA(t *testing.T) {
	if _, err := os.Stat("/sys/module/ib_core"); err == nil {
		t.Skip("this kernel has RDMA")
	}
	n := newSpace(t)
	_, err := n.ReadRDMAMode()
	assert.ErrorIs(t, err, unix.EPROTONOSUPPORT)
	assert.ErrorContains(t, err, "modprobe ib_core")
	assert.Error(t, MoveRDMA(n, "mlx5_0", n))
}

func TestSysfsOfANamespace(t *testing.T) {
	n := newSpace(t)
	addVeth(t, n, "net1", n, "p")
	root, err := n.MountSysfs()
	require.NoError(t, err)
	defer unix.Close(root)
	entries, err := os.ReadDir(fmt.Sprintf("/proc/self/fd/%d/class/net", root))
	require.NoError(t, err)
	var seen []string
	for _, e := range entries {
		seen = append(seen, e.Name())
	}
	assert.ElementsMatch(t, []string{"lo", "net1", "p"}, seen)
}

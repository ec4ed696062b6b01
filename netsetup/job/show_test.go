// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/link"
)

// startHolder starts a process with its own /dev, in which it runs script first.
func startHolder(t *testing.T, script string) int {
	t.Helper()
	if !nstest.IsRoot() {
		t.Skip("needs root: a mount namespace")
	}
	cmd := exec.Command("sh", "-ec", "mount -t tmpfs tmpfs /dev; "+script+"; echo ready; read end")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // mounts stay there
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return cmd.Process.Pid
}

var uverbs = &attach.Network{Files: []link.CharDevice{
	{Path: "infiniband/uverbs3", Major: 231, Minor: 195}, {Path: "infiniband/rdma_cm", Major: 10, Minor: 122}, {Path: "infiniband/issm3", Major: 231, Minor: 67},
}}

// TestShowFiles checks that the job has the nodes of its own RDMA devices, with access for
// everybody except to that of subnet managers, and that the node has no new device node.
func TestShowFiles(t *testing.T) {
	before, _ := os.ReadDir("/dev/infiniband")
	pid := startHolder(t, "mkdir /dev/infiniband")
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	require.NoError(t, makeDeviceNodes(pid, uverbs))
	require.NoError(t, makeDeviceNodes(pid, uverbs), "a later step of the job")
	dir := fmt.Sprintf("/proc/%d/root/dev/infiniband", pid)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 3)
	for _, f := range uverbs.Files {
		var st unix.Stat_t
		require.NoError(t, unix.Lstat("/proc/"+strconv.Itoa(pid)+"/root/dev/"+f.Path, &st))
		assert.Equal(t, f.Number(), st.Rdev, f.Path)
		assert.EqualValues(t, unix.S_IFCHR|map[bool]int{true: 0o600, false: 0o666}[f.Path == "infiniband/issm3"], st.Mode, f.Path)
	}
	after, _ := os.ReadDir("/dev/infiniband")
	assert.Equal(t, before, after)
}

const planted = "/dev/infiniband of the jail is not the tmpfs that was mounted there: it was replaced in the jail's root; run: gojail reload"

func TestShowFilesRefuses(t *testing.T) {
	for script, want := range map[string]string{
		":": "the jail has no /dev/infiniband for the devices of its rails: no such file or directory",
		"mkdir /dev/else; ln -s else /dev/infiniband":                    "the jail has no /dev/infiniband for the devices of its rails: too many levels of symbolic links",
		"mkdir /dev/infiniband; mknod /dev/infiniband/uverbs3 c 231 194": "cannot create /dev/infiniband/uverbs3 for the job: a file of the job's previous network is in its place; submit the job again",
		"mkdir /dev/infiniband; ln -s ../null /dev/infiniband/uverbs3":   "cannot create /dev/infiniband/uverbs3 for the job: a file of the job's previous network is in its place; submit the job again",
		"mkdir /dev/infiniband; chown 65534 /dev/infiniband":             planted,
		"mkdir /dev/infiniband; chmod 777 /dev/infiniband":               planted,
		"mkdir /dev/infiniband; mount --bind /usr/lib /dev/infiniband":   planted,
	} {
		assert.EqualError(t, makeDeviceNodes(startHolder(t, script), uverbs), want)
	}
	assert.ErrorContains(t, makeDeviceNodes(1<<22+1, uverbs), "the job's sandbox ended while its network was attached")
	assert.NoError(t, makeDeviceNodes(1<<22+1, &attach.Network{}), "no RDMA, nothing to show")
}

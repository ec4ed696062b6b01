// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
	"github.com/gojail/gojail/tests/storage/nfs"
)

// mountOnServer mounts a file system in the server's tree, for the rest of the test, and exports it to all.
func (b *testBed) mountOnServer(t *testing.T, fsid int, args ...string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(b.serverPath("more"), 0o755))
	require.NoError(t, b.server.Mount("/export/more", args...))
	t.Cleanup(func() {
		assert.NoError(t, b.server.Unmount("/export/more"))
		os.RemoveAll(b.serverPath("more"))
	})
	b.exportMore(t, "/export/more", "rw,no_root_squash", fsid, nfs.AllClients)
}

// copyByAdmin copies a small jail to /nfs/more/jail, on the host that the exports trust.
func (b *testBed) copyByAdmin(t *testing.T, version string) {
	t.Helper()
	staging := b.makeStaging(t, version)
	r := b.hosts["admin"].runAsRoot("cp", "-a", "/nfs/open/"+staging, "/nfs/more/jail")
	require.Zero(t, r.Code, r)
}

// fill takes all files and all space that are left on /nfs/more.
const fill = `n=0; while : >/nfs/more/fill-$n; do n=$((n+1)); done 2>/dev/null; dd if=/dev/zero of=/nfs/more/fill-0 bs=64k conv=fsync; true`

// TestServerFull: a jail on a full file system runs, and what cannot be written is said by the kernel.
func TestServerFull(t *testing.T) {
	b := sharedBed(t)
	b.mountOnServer(t, 5, "-t", "tmpfs", "-o", "size=24m,nr_inodes=200", "tmpfs")
	b.mountMore(t, "/export/more", "actimeo=1")
	b.addJail(t, "more", "/nfs/more/jail", "")
	b.copyByAdmin(t, "full")
	admin := b.hosts["admin"]
	admin.runAsRoot("sh", "-c", fill)
	r := admin.runGojailOf("n1", "init", "more")
	assert.NotZero(t, r.Code, r)
	assert.Contains(t, r.Stderr, "full", r)
	assert.Len(t, strings.Split(strings.TrimSpace(r.Stderr), "\n"), 1, r)
	admin.runAsRoot("sh", "-c", "rm /nfs/more/fill-*")
	b.initializeJail(t, "more")
	admin.runAsRoot("sh", "-c", fill)
	waitForOutput(t, "full", b.catVersion("more", "n1"))
	r = b.cluster.Run(harness.Alice, "srun", "-wn1", "--jail=more", "sh", "-c", "echo text >new")
	assert.NotZero(t, r.Code, r)
	assert.Contains(t, strings.ToLower(r.Stderr), "no space left on device", r)
	requireUndisturbed(t, b)
}

// TestReadOnlyExport: the server lets no node write. Steps run; --output into the jail is refused as Slurm does.
func TestReadOnlyExport(t *testing.T) {
	b := sharedBed(t)
	t.Cleanup(func() { os.RemoveAll(b.serverPath("more")) })
	makeSmallJail(t, b.serverPath("more/jail"), "readonly")
	b.exportMore(t, "/export/more", "ro,no_root_squash", 6, nfs.AllClients)
	b.exportMore(t, "/export/more", "rw,no_root_squash", 6, b.hosts["admin"].client.Address)
	b.mountMore(t, "/export/more", "actimeo=1")
	b.addJail(t, "more", "/nfs/more/jail", "")
	r := b.hosts["n1"].runGojail("init", "more")
	assert.NotZero(t, r.Code, r)
	assert.Contains(t, r.Stderr, "read-only", r)
	b.initializeJail(t, "more")
	waitForOutput(t, "readonly", b.catVersion("more", "n1"))
	r = b.cluster.Run(harness.Alice, "srun", "-wn1", "--jail=more", "sh", "-c", "echo x >x")
	assert.NotZero(t, r.Code, r)
	assert.Contains(t, strings.ToLower(r.Stderr), "read-only file system", r)
	job := b.cluster.Batch(harness.Alice, "true", "-wn1", "--jail=more", "--output=/home/alice/out")
	assert.Equal(t, "FAILED", job.State, job)
	requireUndisturbed(t, b)
	r = b.hosts["n1"].runGojail("check")
	assert.Contains(t, r.Stdout, "jail more", r)
}

// TestNoTypesInDirectories: a file system that leaves the types of files out of
// directories (d_type of readdir(3) is DT_UNKNOWN) will do.
func TestNoTypesInDirectories(t *testing.T) {
	b := sharedBed(t)
	image := filepath.Join(b.server.Dir, "plain.ext4")
	t.Cleanup(func() { os.Remove(image) })
	_, err := b.server.Run("/usr/sbin/mke2fs", "-q", "-t", "ext4", "-O", "^filetype", "/export/plain.ext4", "48M")
	require.NoError(t, err)
	b.mountOnServer(t, 7, "-o", "loop", image)
	b.mountMore(t, "/export/more")
	b.addJail(t, "more", "/nfs/more/jail", "")
	b.copyByAdmin(t, "plain")
	b.initializeJail(t, "more")
	requireOutput(t, "plain", b.catVersion("more", "n1")())
	requireOutput(t, "plain\nplain", b.cluster.Run(harness.Alice, "srun", "-N2", "--jail=more", "cat", "/etc/gojail-jail"))
	r := b.hosts["n1"].runGojail("check")
	assert.NotContains(t, r.Stdout, "FAIL", r)
}

// TestTwoInitsAtOnce: both find in the end what the one or the other made.
func TestTwoInitsAtOnce(t *testing.T) {
	b := sharedBed(t)
	t.Cleanup(func() { os.RemoveAll(b.serverPath("more")) })
	makeSmallJail(t, b.serverPath("more/jail"), "two")
	b.exportMore(t, "/export/more", "rw,no_root_squash", 8, nfs.AllClients)
	b.mountMore(t, "/export/more")
	b.addJail(t, "more", "/nfs/more/jail", "")
	results := make(chan harness.Result)
	for _, node := range harness.Nodes {
		go func() { results <- b.hosts[node].runGojail("init", "more") }()
	}
	for range harness.Nodes {
		r := <-results
		assert.Zero(t, r.Code, r)
		assert.Empty(t, r.Stderr, r)
	}
	for _, node := range harness.Nodes {
		r := b.hosts[node].runGojail("check")
		assert.NotContains(t, r.Stdout, "FAIL", r)
	}
	requireOutput(t, "two\ntwo", b.cluster.Run(harness.Alice, "srun", "-N2", "--jail=more", "--chdir=/", "cat", "/etc/gojail-jail"))
}

// TestMountThatAppearsLater: what an administrator mounts below the root after the
// template was made is not in jobs until gojail reload, and disturbs none.
func TestMountThatAppearsLater(t *testing.T) {
	b := sharedBed(t)
	b.warmUp(t, "open")
	n1 := b.hosts["n1"]
	list := func() harness.Result { return b.runStep("open", "n1", "ls", "/mnt/data") }
	requireOutput(t, "", list())
	require.NoError(t, n1.mountPath("4.2", "/export/open", "/nfs/open/jail/mnt/data", "nosuid", "nodev"))
	t.Cleanup(func() { assert.Zero(t, n1.runAsRoot("umount", "-l", "/nfs/open/jail/mnt/data").Code) })
	requireOutput(t, "", list())
	require.Zero(t, n1.runGojail("reload").Code)
	r := list()
	assert.Zero(t, r.Code, r)
	assert.NotEmpty(t, r.Stdout, "after a reload it is there")
	requireUndisturbed(t, b)
}

// TestClockThatDiffers: the files of a server whose clock differs have times that are hours away from the node's, on either side.
// Nothing takes them for the node's: a jail is assembled, and a switched root is found. (Leases: TestCollectionOnNFS.)
func TestClockThatDiffers(t *testing.T) {
	b := sharedBed(t)
	prepareMore(t, b, "one", "two")
	n1 := b.hosts["n1"]
	for _, differs := range []string{"3 hours ago", "3 hours"} {
		out, err := exec.Command("find", b.serverPath("more"), "-exec", "touch", "-h", "-d", differs, "{}", "+").CombinedOutput()
		require.NoError(t, err, string(out))
		require.Zero(t, n1.runGojail("reload").Code)
		waitForOutput(t, "one", b.catVersion("more", "n1"))
		r := n1.runGojail("check")
		assert.Zero(t, r.Code, r)
		assert.NotContains(t, r.Stdout, "FAIL", r)
	}
	require.NoError(t, errors.Join(os.Rename(b.serverPath("more/jail"), b.serverPath("more/old")), os.Rename(b.serverPath("more/next"), b.serverPath("more/jail"))))
	out, err := exec.Command("touch", "-d", "3 hours ago", b.serverPath("more")).CombinedOutput()
	require.NoError(t, err, string(out))
	waitForOutput(t, "two", b.catVersion("more", "n1"))
}

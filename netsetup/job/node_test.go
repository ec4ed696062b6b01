// SPDX-License-Identifier: Apache-2.0

package job

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/netsetup/attach"
)

// TestOpen checks that a network.toml that cannot be loaded does not prevent Release and
// Sweep.
func TestOpen(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	n := Node{Config: filepath.Join(dir, "network.toml"), Name: "n1", Cluster: "c", State: filepath.Join(dir, "state"), Scratch: filepath.Join(dir, "scratch")}
	require.NoError(t, os.Mkdir(n.State, 0o700))

	site, end, err := n.openSite()
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.Nil(t, site.Config)
	require.NoError(t, attach.Release(t.Context(), site, "17"))
	swept, err := attach.Sweep(t.Context(), site, func(string) bool { return false })
	require.NoError(t, err)
	assert.Empty(t, swept.Problems)
	_, err = attach.Attach(t.Context(), site, attach.Job{ID: "17", Netns: site.Host})
	assert.EqualError(t, err, "this node has no network configuration; write network.toml")
	end()

	require.NoError(t, os.WriteFile(n.Config, nil, 0o600))
	site, end, err = n.openSite()
	require.NoError(t, err)
	assert.Equal(t, "n1", site.Config.Node)
	assert.Equal(t, "c", site.Cluster)
	assert.Equal(t, filepath.Join(dir, "state/net"), site.State)
	assert.Equal(t, filepath.Join(dir, "scratch/ufm"), site.Queue)
	var own, st unix.Stat_t
	require.NoError(t, unix.Fstat(site.Host, &own))
	require.NoError(t, unix.Stat("/proc/self/ns/net", &st))
	assert.Equal(t, st.Ino, own.Ino)
	end()
	assert.Error(t, unix.Fstat(site.Host, &own), "closed")
}

// TestOpenToSweep checks that a node without network.toml sweeps without an error, unless a
// job holds something there.
func TestOpenToSweep(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	n := Node{Config: filepath.Join(dir, "network.toml"), Name: "n1", State: dir, Scratch: dir}
	jobs := filepath.Join(attach.StateDir(dir), "jobs")
	require.NoError(t, os.MkdirAll(jobs, 0o700))
	_, end, err := n.openSiteToSweep()
	require.NoError(t, err)
	end()

	require.NoError(t, os.WriteFile(filepath.Join(jobs, "17.json"), []byte("damaged"), 0o600))
	_, end, err = n.openSiteToSweep()
	require.ErrorIs(t, err, fs.ErrNotExist)
	end()

	require.NoError(t, os.Remove(filepath.Join(jobs, "17.json")))
	require.NoError(t, os.WriteFile(n.Config, []byte("nonsense"), 0o600))
	_, end, err = n.openSiteToSweep()
	require.Error(t, err, "it is there, and wrong")
	end()
}

// TestSweepAfterABoot checks that the address of a job of before the boot, which emptied the state
// directory, is released.
func TestSweepAfterABoot(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	n := Node{Config: filepath.Join(dir, "network.toml"), Name: "n1", Cluster: "prod", State: dir, Scratch: dir}
	swept, err := n.Sweep(t.Context(), func(string) bool { return false })
	require.NoError(t, err)
	assert.Nil(t, swept, "nothing is configured")

	leases := filepath.Join(dir, "leases")
	require.NoError(t, os.WriteFile(n.Config, []byte("[[pool]]\nname = \"r0\"\nsubnet = \"10.1.0.0/24\"\ndirectory = \""+leases+"\"\n"), 0o600))
	for _, job := range []string{"17", "18"} {
		for _, path := range []string{"nodes/n1/prod," + job + ",rail0,10.1.0." + job + ",-,1790000000", "addresses/10.1.0.0/10.1.0." + job + "/prod," + job + ",n1,rail0,-,1790000000"} {
			path = filepath.Join(leases, "r0", path)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, nil, 0o600))
		}
	}
	require.NoError(t, os.Chmod(leases, 0o700))
	swept, err = n.Sweep(t.Context(), func(job string) bool { return job == "18" })
	require.NoError(t, err)
	require.NotNil(t, swept)
	assert.Empty(t, swept.Problems)
	assert.Equal(t, []string{"10.1.0.17 of rail rail0 of job 17 on n1"}, swept.Addresses)
}

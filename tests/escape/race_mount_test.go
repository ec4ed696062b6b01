// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// mostRefused is the maximum number of launches until one has run: on a slow machine, all of the few rounds may be refused.
const mostRefused = 60

// TestRaceSource swaps a directory of alice's that --jail-mount names with a link to
// a directory of root's, again and again.
func TestRaceSource(t *testing.T) {
	s := sharedSite(t)
	s.requireNodeUnchanged(t)
	for path, link := range map[string]string{"/data/alice/source": "", "/data/alice/link": trap} {
		path := s.Path(path)
		if link == "" {
			require.NoError(t, os.Mkdir(path, 0o755))
			require.NoError(t, os.WriteFile(path+"/name", []byte("source\n"), 0o644))
		} else {
			require.NoError(t, os.Symlink(link, path))
		}
		t.Cleanup(func() { os.RemoveAll(path) })
	}
	s.swapUntilEnd(t, "/data/alice/source", "/data/alice/link")
	// The control checks the path before it mounts, as a careless launcher would.
	const careless = `for i in $(seq 2000); do
	[ "$(readlink -f /data/alice/source)" = /data/alice/source ] && mount --bind /data/alice/source /mnt && grep trap /mnt/name && exit
	umount -q /mnt; done 2>/dev/null`
	require.NoError(t, os.MkdirAll(s.Path("/mnt"), 0o755))
	r := s.Root("unshare", "-m", "sh", "-c", careless)
	assert.Contains(t, r.Stdout, "trap", "control: %s", r)
	seen := outcomes{}
	for i := 0; i < countRounds(30, 1000) || seen["ran"] == 0 && i < mostRefused; i++ {
		r := s.launchStep(t, harness.Alice, seen, "--jail-mount=/data/alice/source:/mnt", "cat", "/mnt/name")
		if !assert.NotContains(t, r.Stdout, "trap", r) || t.Failed() {
			break
		}
	}
	t.Log(seen)
	assert.NotZero(t, seen["ran"], "every launch was refused")
}

// TestRaceDestination swaps the destination of --jail-mount in the jail with a link out of the jail, again and again.
func TestRaceDestination(t *testing.T) {
	s := sharedSite(t)
	s.giveRootToAlice(t)
	require.NoError(t, os.Chmod(s.Path(trap), 0o755))
	t.Cleanup(func() { require.NoError(t, os.Chmod(s.Path(trap), 0o700)) })
	s.requireNodeUnchanged(t)
	home := s.Path(owned+"/home/alice") + "/"
	require.NoError(t, os.Mkdir(home+"place", 0o755))
	require.NoError(t, os.Symlink("../../../../../../../../srv/trap", home+"link"))
	t.Cleanup(func() { os.RemoveAll(home + "place"); os.RemoveAll(home + "link") })
	s.swapUntilEnd(t, owned+"/home/alice/place", owned+"/home/alice/link")
	const careless = `for i in $(seq 2000); do
	[ ! -L ` + owned + `/home/alice/place ] && mount --bind /data/shared ` + owned + `/home/alice/place && mountpoint -q ` + trap + ` && echo trap && exit
	umount -q ` + owned + `/home/alice/place; done 2>/dev/null`
	r := s.Root("unshare", "-m", "sh", "-c", careless)
	assert.Contains(t, r.Stdout, "trap", "control: %s", r)
	seen := outcomes{}
	for i := 0; i < countRounds(30, 1000) || seen["ran"] == 0 && i < mostRefused; i++ {
		s.launchStep(t, harness.Alice, seen, "--jail-mount=/data/alice:/home/alice/place", attackPath, "run", "view", "proc-root", "descriptors")
		if t.Failed() {
			break
		}
	}
	t.Log(seen)
	assert.NotZero(t, seen["ran"], "every launch was refused")
}

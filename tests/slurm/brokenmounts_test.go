// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// mountSilent mounts a FUSE file system that never answers, as fusermount3 does for a user, and returns a function that
// kills its daemon.
func mountSilent(t *testing.T, c *harness.Cluster, user, dir string) (kill func()) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "silentfs")
	out, err := exec.Command("gcc", "-O2", "-Wall", "-Werror", "-o", program, "testdata/silentfs.c").CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(program)
	require.NoError(t, err)
	replaceFile(t, c.Path("/root/silentfs"), string(text))
	runAsRoot(t, c, "chmod 755 /root/silentfs; mkdir -p "+dir+"; /root/silentfs $(id -u "+user+") "+dir)
	var once bool
	kill = func() {
		if found := c.Find("/root/silentfs"); len(found) == 1 && !once {
			once = true
			runAsRoot(t, c, "kill -KILL "+strconv.Itoa(found[0].Pid))
		}
	}
	t.Cleanup(kill)
	return kill
}

// TestSilentMountOfAUser: a user's own FUSE mount below a directory that jails show stops nobody's jobs; one of root's does, by
// its name.
func TestSilentMountOfAUser(t *testing.T) {
	for user, want := range map[string]string{"bob": "v1", "root": "the storage silentfs (fuse) at "} {
		t.Run(user, func(t *testing.T) {
			c := newTreesCluster(t, 5*time.Second*harness.Slow)
			mountSilent(t, c, user, "/srv/versions/v1/home/bob/mnt")
			assert.Contains(t, readTree(c), want, "the template is new")
			waitForExpiry()
			assert.Contains(t, readTree(c), want)
		})
	}
}

// TestDeadMountIsNoReasonForOneTemplateAfterAnother: a mount that was lost before the template was made is as lost in the next one.
func TestDeadMountIsNoReasonForOneTemplateAfterAnother(t *testing.T) {
	c := newTreesCluster(t, 5*time.Second*harness.Slow)
	mountSilent(t, c, "root", "/srv/versions/v1/mnt/dead")()
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		return strings.Contains(c.Root("stat", "/srv/versions/v1/mnt/dead").Stderr, "not connected")
	}))
	require.Equal(t, "v1", readTree(c))
	zygote := readRecordPid(t, c, "jails/debian/zygote")
	for range 3 {
		waitForExpiry()
		assert.Equal(t, "v1", readTree(c))
	}
	assert.Equal(t, zygote, readRecordPid(t, c, "jails/debian/zygote"))
}

// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/nstest"
)

// newEmptyJail returns a jail whose root has only the directories of every Linux tree.
func newEmptyJail(t *testing.T) (*config.Config, *config.Jail, *plan.View) {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"proc", "sys", "dev", "etc"} {
		require.NoError(t, os.Mkdir(filepath.Join(root, dir), 0o755))
	}
	const host = "/etc/passwd"
	c, err := config.ParseConfig("default = \"a\"\nscratch = \""+t.TempDir()+"\"\n[jail.a]\nroot = \""+root+"\"\nslurm = false\n"+
		"host = [\""+host+"\"]\nlocal = [\"/var/tmp\"]\n[[jail.a.mounts]]\ndestination = \"/run/x\"\nsource = \"/etc\"\n", "")
	require.NoError(t, err)
	j := c.Jails["a"]
	v, err := plan.Jail(c, j, &node.HostFacts{Exists: map[string]bool{host: true}})
	require.NoError(t, err)
	return c, j, v
}

func TestTargetsAreThoseOnTheJailsStorage(t *testing.T) {
	c, j, v := newEmptyJail(t)
	assert.Equal(t, []plan.Target{
		{Path: "/proc", Dir: true}, {Path: "/sys", Dir: true}, {Path: "/dev", Dir: true}, {Path: "/run", Dir: true}, {Path: "/var/tmp", Dir: true},
		{Path: "/var/spool/slurmd", Dir: true}, {Path: j.Host[0], Dir: false}, {Path: "/tmp", Dir: true},
	}, plan.Targets(c, j, v, os.Stat), "nothing below /dev and /run, which the sandbox fills itself")
}

func TestMakeTargets(t *testing.T) {
	c, j, v := newEmptyJail(t)
	made, err := MakeTargets(c, j, v, time.Now().Add(time.Minute))
	require.NoError(t, err)
	assert.Contains(t, made, plan.Target{Path: "/run", Dir: true})
	assert.Contains(t, made, plan.Target{Path: "/var", Dir: true})
	assert.Contains(t, made, plan.Target{Path: "/var/tmp", Dir: true})
	assert.Contains(t, made, plan.Target{Path: j.Host[0], Dir: false})
	for _, made := range made {
		st, err := os.Lstat(filepath.Join(j.Root, made.Path))
		require.NoError(t, err)
		want := os.FileMode(0o644)
		if made.Dir {
			want = os.ModeDir | 0o755
		}
		assert.Equal(t, want, st.Mode(), made.Path)
	}
	made, err = MakeTargets(c, j, v, time.Now().Add(time.Minute))
	require.NoError(t, err)
	assert.Empty(t, made, "the second time there is nothing to make")
}

func TestMakeTargetsStaysInsideTheJail(t *testing.T) {
	c, j, v := newEmptyJail(t)
	outside := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(j.Root, "var")))
	_, err := MakeTargets(c, j, v, time.Now().Add(time.Minute))
	assert.ErrorContains(t, err, "which does not exist in the jail, is in its place", "the link is resolved inside the jail")
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	assert.Empty(t, entries)

	require.NoError(t, os.MkdirAll(filepath.Join(j.Root, outside), 0o755))
	_, err = MakeTargets(c, j, v, time.Now().Add(time.Minute))
	require.NoError(t, err)
	assert.DirExists(t, filepath.Join(j.Root, outside, "tmp"))
	entries, err = os.ReadDir(outside)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

func TestMissingTargetsRefusesTheWrongKind(t *testing.T) {
	c, j, v := newEmptyJail(t)
	require.NoError(t, os.WriteFile(filepath.Join(j.Root, "tmp"), nil, 0o644))
	root, err := node.OpenJail(j)
	require.NoError(t, err)
	defer unix.Close(root)
	_, err = MissingTargets(c, j, v, root)
	assert.ErrorContains(t, err, "mount target /tmp in "+j.Root+" must be a directory")
}

// TestLockRootWhileThePathChanges: the owner of a directory above the root gets no file created elsewhere.
func TestLockRootWhileThePathChanges(t *testing.T) {
	_, j, _ := newEmptyJail(t)
	root, err := node.OpenJail(j)
	require.NoError(t, err)
	defer unix.Close(root)
	other := t.TempDir()
	require.NoError(t, os.Rename(j.Root, j.Root+".old"))
	require.NoError(t, os.Symlink(other, j.Root))
	lock, err := lockRoot(j, root, time.Now())
	require.NoError(t, err)
	defer lock.Close()
	assert.NoFileExists(t, filepath.Join(other, ".gojail.lock"))
	assert.FileExists(t, filepath.Join(j.Root+".old", ".gojail.lock"))
}

func TestMakeTargetsWaitsForAnotherNode(t *testing.T) {
	c, j, v := newEmptyJail(t)
	unlock, err := filelock.Lock(filepath.Join(j.Root, ".gojail.lock"), time.Now())
	require.NoError(t, err)
	defer unlock()
	_, err = MakeTargets(c, j, v, time.Now().Add(20*time.Millisecond))
	assert.ErrorContains(t, err, "cannot lock")
	assert.NoDirExists(t, filepath.Join(j.Root, "tmp"))
}

func makeLocal(t *testing.T, c *config.Config, j *config.Jail) error {
	nstest.NeedRoot(t)
	root, err := node.OpenJail(j)
	require.NoError(t, err)
	defer unix.Close(root)
	return MakeLocal(c, j, root)
}

func TestMakeLocal(t *testing.T) {
	c, j, _ := newEmptyJail(t)
	err := makeLocal(t, c, j)
	assert.ErrorContains(t, err, "mount target /var/tmp is missing in "+j.Root+"; create it once with: gojail init a")
	require.NoError(t, os.MkdirAll(filepath.Join(j.Root, "var/tmp"), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(j.Root, "var/tmp"), os.ModeSticky|0o777))
	require.NoError(t, makeLocal(t, c, j))
	dir := plan.LocalDir(c, j, "/var/tmp")
	st, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, os.ModeDir|os.ModeSticky|0o777, st.Mode(), "as in the jail")
	st, err = os.Stat(filepath.Dir(dir))
	require.NoError(t, err)
	assert.Equal(t, os.ModeDir|0o711, st.Mode(), "root's alone")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kept"), nil, 0o644))
	require.NoError(t, makeLocal(t, c, j))
	assert.FileExists(t, filepath.Join(dir, "kept"))

	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Symlink("/etc", dir))
	assert.ErrorContains(t, makeLocal(t, c, j), "another file is in its place")
}

// TestMakeLocalInUsersDirectories: a user who owns a directory above could exchange the new one with a link before root gives it its
// owner and mode.
func TestMakeLocalInUsersDirectories(t *testing.T) {
	nstest.NeedRoot(t)
	const user = 65534
	for _, above := range []string{"", "local", "local/a", "local/a/var"} {
		c, j, _ := newEmptyJail(t)
		require.NoError(t, os.MkdirAll(filepath.Join(j.Root, "var/tmp"), 0o755))
		dir := filepath.Join(c.Scratch, above)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.Chown(dir, user, user))
		assert.EqualError(t, makeLocal(t, c, j), "jail a: cannot create the local directory "+plan.LocalDir(c, j, "/var/tmp")+
			" on this node: "+dir+": belongs to uid 65534 and not to root; run: chown root:root "+dir)
		assert.NoDirExists(t, plan.LocalDir(c, j, "/var/tmp"))
		require.NoError(t, os.Chown(dir, 0, 0))
		require.NoError(t, os.Chmod(dir, os.ModeSticky|0o777))
		assert.NoError(t, makeLocal(t, c, j), "as below /tmp")
	}
}

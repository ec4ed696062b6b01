// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/state/statetest"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/nstest"
)

func init() {
	// stay is a process with a root of its own, until it is killed.
	nstest.Actions["stay"] = func(root string) (any, error) {
		if err := unix.Chroot(root); err != nil {
			return nil, err
		}
		select {}
	}
}

// TestChild is where a child of nstest begins its work.
func TestChild(*testing.T) { nstest.Child() }

// site is a store with two versions of a jail, and nodes that use it.
type site struct {
	dir   string
	store *store.Store
}

func newSite(t *testing.T) *site {
	t.Helper()
	nstest.NeedRoot(t)
	dir := t.TempDir()
	s, err := store.Open(dir)
	require.NoError(t, err)
	jail, err := s.MakeJail("debian")
	require.NoError(t, err)
	for _, id := range []string{"1", "2"} {
		work, err := jail.StartBuild(context.Background(), false)
		require.NoError(t, err)
		require.NoError(t, os.Mkdir(work.Path("tree"), 0o755))
		nstest.WriteFile(t, work.Path("list"), "")
		require.NoError(t, work.Publish(context.Background(), work.Path("tree"), work.Path("list"), &store.Record{Version: id, Format: store.FormatDir}))
		require.NoError(t, work.Remove())
	}
	site := &site{dir, s}
	site.switchTo(t, "1")
	return site
}

func (s *site) switchTo(t *testing.T, id string) {
	t.Helper()
	jail, err := s.store.Jail("debian")
	require.NoError(t, err)
	_, err = jail.SwitchTo(context.Background(), id, "me")
	require.NoError(t, err)
}

// testNode is a node: a state directory and a configuration.
type testNode struct {
	state  *state.State
	config *config.Config
	jail   *config.Jail
}

func (s *site) node(t *testing.T, name string) *testNode {
	t.Helper()
	opened, err := state.OpenState(t.TempDir())
	require.NoError(t, err)
	j := &config.Jail{Name: "small", Root: filepath.Join(s.dir, "debian/current"), Versions: "debian"}
	other := &config.Jail{Name: "plain", Root: "/srv/plain"}
	c := &config.Config{Node: name, Store: s.dir, Jails: map[string]*config.Jail{"small": j, "plain": other}}
	return &testNode{opened, c, j}
}

// startInRoot starts a process whose root is a directory.
func startInRoot(t *testing.T, root string) *exec.Cmd {
	t.Helper()
	cmd := nstest.Command("stay", root)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	require.Eventually(t, func() bool {
		at, err := os.Readlink(fmt.Sprintf("/proc/%d/root", cmd.Process.Pid))
		return err == nil && at == root
	}, time.Minute, time.Millisecond)
	return cmd
}

// addHolder adds a record of a process with that root to the state directory.
func (n *testNode) addHolder(t *testing.T, path, root string) *exec.Cmd {
	t.Helper()
	cmd := startInRoot(t, root)
	statetest.AddRecord(t, n.state, path, statetest.RecordOf(t, cmd.Process.Pid))
	return cmd
}

// readLease returns the uses and unknowns of a node's lease, after the node has written it.
func (s *site) readLease(t *testing.T, n *testNode) string {
	t.Helper()
	require.NoError(t, Refresh(context.Background(), n.state, n.config, true))
	leases, damaged, err := s.store.Leases()
	require.NoError(t, err)
	require.Empty(t, damaged)
	for _, l := range leases {
		if l.Node != n.config.Node {
			continue
		}
		var words []string
		for _, u := range l.Uses {
			words = append(words, u.Version+" "+u.By)
		}
		return strings.Join(append(words, l.Unknown...), "\n")
	}
	t.Fatal("no lease of ", n.config.Node)
	return ""
}

func (s *site) version(id string) string { return filepath.Join(s.dir, "debian/versions", id) }

func TestTwoNodes(t *testing.T) {
	s := newSite(t)
	a, b := s.node(t, "a"), s.node(t, "b")
	assert.Empty(t, s.readLease(t, a))
	assert.Empty(t, s.readLease(t, b))
	job := a.addHolder(t, "jobs/17/small", s.version("1"))
	a.addHolder(t, "jobs/18/plain", t.TempDir())
	b.addHolder(t, "jails/small/zygote", s.version("2"))
	assert.Equal(t, "1 job 17", s.readLease(t, a), "recognised by device and inode; a root elsewhere is no use")
	assert.Equal(t, "2 template of jail small", s.readLease(t, b))

	require.NoError(t, job.Process.Kill())
	job.Wait()
	assert.Equal(t, "job 17: the holder of its sandbox small has ended, and which versions the job uses is unknown", s.readLease(t, a))
	require.NoError(t, os.RemoveAll(a.state.JobDir("17")))
	assert.Empty(t, s.readLease(t, a))
}

func TestVersionByItsFile(t *testing.T) {
	s := newSite(t)
	n := s.node(t, "a")
	root := t.TempDir()
	path := filepath.Join(root, ".gojail.version")
	n.addHolder(t, "jobs/17/small", root)
	for _, test := range []struct {
		make func()
		want string
	}{
		{func() {}, "job 17: cannot determine which version it has: cannot open .gojail.version in its root: no such file or directory"},
		{func() { nstest.WriteFile(t, path, "7-image\n") }, "7-image job 17"},
		{func() { require.NoError(t, os.Chown(path, 1000, 1000)) }, "job 17: cannot determine which version it has: .gojail.version in its root is not a file of root's"},
		{func() { require.NoError(t, os.Remove(path)); require.NoError(t, os.Symlink("/etc/hostname", path)) }, "job 17: cannot determine which version it has: cannot open .gojail.version in its root: too many levels of symbolic links"},
		{func() { require.NoError(t, os.Remove(path)); require.NoError(t, unix.Mkfifo(path, 0o644)) }, "job 17: cannot determine which version it has: .gojail.version in its root is not a file of root's"},
		{func() { require.NoError(t, os.Remove(path)); nstest.WriteFile(t, path, strings.Repeat("x", 300)) }, "job 17: cannot determine which version it has: .gojail.version in its root names no version"},
	} {
		test.make()
		assert.Equal(t, test.want, s.readLease(t, n))
	}
}

// TestTemplateThatIsBeingMade covers a template whose root is open, but which has no record yet.
func TestTemplateThatIsBeingMade(t *testing.T) {
	s := newSite(t)
	n := s.node(t, "a")
	require.NoError(t, os.MkdirAll(n.state.JailDir("small"), 0o700))
	lock, err := filelock.Try(filepath.Join(n.state.JailDir("small"), contract.LockFile))
	require.NoError(t, err)
	root, err := Around(n.state, n.config, n.jail, func() (int, error) {
		leases, _, err := s.store.Leases()
		require.NoError(t, err)
		require.Len(t, leases, 1)
		assert.Equal(t, []store.Use{{Version: "1", By: "template of jail small"}}, leases[0].Uses, "before the root is opened")
		s.switchTo(t, "2")
		return 7, nil
	})
	require.NoError(t, err)
	assert.Equal(t, 7, root)
	assert.Equal(t, "1 template of jail small\n2 template of jail small", s.readLease(t, n), "switched meanwhile: it may be either")
	lock.Close()
	assert.Empty(t, s.readLease(t, n), "its launcher was killed")

	_, err = Around(n.state, n.config, n.jail, func() (int, error) { return -1, errors.New("no root") })
	require.EqualError(t, err, "no root")
	n.addHolder(t, "jails/small/zygote", s.version("2"))
	assert.Equal(t, "2 template of jail small", s.readLease(t, n))
}

func TestLeaseFailsNoJob(t *testing.T) {
	s := newSite(t)
	n := s.node(t, "a")
	require.NoError(t, os.Remove(filepath.Join(s.dir, ".nodes")))
	nstest.WriteFile(t, filepath.Join(s.dir, ".nodes"), "in the way")
	root, err := Around(n.state, n.config, n.jail, func() (int, error) { return 7, nil })
	require.NoError(t, err)
	assert.Equal(t, 7, root)
	require.ErrorContains(t, Refresh(context.Background(), n.state, n.config, false), "cannot write the lease of this node in ")
	n.config.Store = filepath.Join(s.dir, "gone")
	_, err = Around(n.state, n.config, n.jail, func() (int, error) { return 7, nil })
	require.NoError(t, err)
}

// TestRefreshAfterItsTime: nothing is written to the state directory on behalf of a caller whose time is over.
func TestRefreshAfterItsTime(t *testing.T) {
	s := newSite(t)
	n := s.node(t, "a")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for range 50 {
		require.ErrorContains(t, Refresh(ended, n.state, n.config, false), "does not answer in time")
	}
	time.Sleep(10 * time.Millisecond) // for goroutines that there should not be
	assert.NoFileExists(t, filepath.Join(n.state.Path(), lockFile))
}

func TestLeaseIsWrittenWhenSomethingChanged(t *testing.T) {
	s := newSite(t)
	n := s.node(t, "a")
	asked := func(must bool) time.Time {
		require.NoError(t, Refresh(context.Background(), n.state, n.config, must))
		leases, _, err := s.store.Leases()
		require.NoError(t, err)
		require.Len(t, leases, 1)
		return leases[0].Asked
	}
	first := asked(false)
	assert.Equal(t, first, asked(false))
	second := asked(true)
	assert.NotEqual(t, first, second)
	s.switchTo(t, "2")
	third := asked(false)
	assert.NotEqual(t, second, third, "the node sees another current version")
	n.addHolder(t, "jobs/17/small", s.version("1"))
	assert.NotEqual(t, third, asked(false))
	require.NoError(t, os.WriteFile(filepath.Join(n.state.Path(), leaseFile), []byte("{"), 0o600))
	asked(false) // what is damaged is replaced
}

func TestConfiguredVersionIsInUse(t *testing.T) {
	s := newSite(t)
	n := s.node(t, "a")
	n.config.Jails["fixed"] = &config.Jail{Name: "fixed", Root: s.version("3.squashfs")}
	n.config.Jails["path"] = &config.Jail{Name: "path", Root: filepath.Join(s.dir, "debian/current")}
	assert.Equal(t, "3 root of jail fixed", s.readLease(t, n))
}

// TestStepThatIsBeingBuilt covers a step that has a holder which has no record yet: it may use any version.
func TestStepThatIsBeingBuilt(t *testing.T) {
	s := newSite(t)
	n := s.node(t, "a")
	require.NoError(t, os.MkdirAll(n.state.JobDir("17"), 0o700))
	lock, err := filelock.Try(filepath.Join(n.state.JobDir("17"), contract.LockFile))
	require.NoError(t, err)
	assert.Equal(t, "job 17: a step is being built", s.readLease(t, n))
	lock.Close()
	assert.Empty(t, s.readLease(t, n))
}

// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
	"github.com/gojail/gojail/tests/storage/nfs"
)

// trees are what the server exports, and the jails of these names in them.
var trees = []string{"open", "squash"}

// deadline is that of gojail.toml.
const deadline = 20 * time.Second

var config = `default    = "none"
allow_none = true
scratch    = "/var/lib/gojail/%n"
deadline   = "` + deadline.String() + `"

[slurm]
spool = "/var/spool/slurmd/%n"

[jail.open]
root      = "/nfs/open/jail"
jail_root = ["self"]
[[jail.open.user_mounts]]
source = "/nfs/open/home"

[jail.squash]
root      = "/nfs/squash/jail"
jail_root = ["self"]
[[jail.squash.user_mounts]]
source = "/nfs/squash/home"
`

// testBed is the server, the cluster and its hosts: n1, n2 and admin.
type testBed struct {
	server  *nfs.Server
	cluster *harness.Cluster
	hosts   map[string]*host
}

// common is the bed that tests share.
var common harness.Shared[*testBed]

func TestMain(m *testing.M) { os.Exit(common.Main(m)) }

// sharedBed returns the shared test bed, as it was at the beginning: nodes idle, without templates.
func sharedBed(t *testing.T) *testBed {
	t.Helper()
	if why := nfs.FindMissing(); why != "" {
		t.Skip(why)
	}
	b := common.Get(t, startBed)
	b.cluster.ShowLogs(t)
	t.Cleanup(func() { b.restoreBed(t) })
	return b
}

// startBed makes the trees, the server, its clients and a cluster whose slurmds are two of them.
func startBed() (b *testBed, err error) {
	b = &testBed{hosts: map[string]*host{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Stop())
			b = nil
		}
	}()
	dir, err := makeTrees()
	if err != nil {
		return b, err
	}
	if b.server, err = nfs.Start(dir); err != nil {
		return b, err
	}
	if b.cluster, err = harness.UpHead(harness.Options{Plugin: true, Bare: true, Config: config, Files: map[string]string{
		"/etc/subuid": "alice:100000:65536\n", "/etc/subgid": "alice:100000:65536\n"}}); err != nil {
		return b, err
	}
	for _, name := range append([]string{"admin"}, harness.Nodes...) {
		if b.hosts[name], err = b.newHost(name); err != nil {
			return b, err
		}
	}
	if err := b.exportTrees(); err != nil {
		return b, err
	}
	for _, name := range []string{"admin", "n1", "n2"} {
		for _, tree := range trees {
			if err := b.hosts[name].mountPath("4.2", "/export/"+tree, "/nfs/"+tree, "nosuid", "nodev"); err != nil {
				return b, err
			}
		}
	}
	return b, b.startNodes()
}

// startNodes makes the mount targets, as an administrator does once, and starts each slurmd.
func (b *testBed) startNodes() error {
	for _, node := range harness.Nodes {
		for _, tree := range trees {
			if r := b.hosts["admin"].runGojailOf(node, "init", tree); r.Code != 0 {
				return fmt.Errorf("gojail init %s: %s", tree, r)
			}
		}
		if err := b.cluster.StartSlurmd(node, b.hosts[node].enterCommand()...); err != nil {
			return err
		}
	}
	if !b.cluster.WaitIdle() {
		return fmt.Errorf("the nodes are not idle: %s", b.cluster.Drained())
	}
	return nil
}

// exportTrees exports both trees; admin's root is root in each.
func (b *testBed) exportTrees() error {
	return errors.Join(
		b.server.Export("/export/open", nfs.AllClients, "rw,no_root_squash", 1),
		b.server.Export("/export/squash", nfs.AllClients, "rw,root_squash", 2),
		b.server.Export("/export/squash", b.hosts["admin"].client.Address, "rw,no_root_squash", 2),
	)
}

// makeTrees makes the directory that is exported: in each tree a jail, which is a
// copy of the release's by hard links, and homes of alice's and bob's.
func makeTrees() (dir string, err error) {
	repository, err := harness.Repository()
	if err != nil {
		return "", err
	}
	jail, err := filepath.EvalSymlinks(filepath.Join(repository, "build/cache/jail-"+harness.Release()))
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp(filepath.Join(repository, "build"), "export-"); err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	for _, tree := range trees {
		if err := os.MkdirAll(filepath.Join(dir, tree, "home"), 0o755); err != nil {
			return "", err
		}
		if err := copyJail(jail, filepath.Join(dir, tree, "jail"), tree); err != nil {
			return "", err
		}
		for user, id := range map[string]int{harness.Alice: 5001, harness.Bob: 5002} {
			for _, home := range []string{filepath.Join(dir, tree, "home", user), filepath.Join(dir, tree, "jail/home", user)} {
				if err := errors.Join(os.MkdirAll(home, 0o700), os.Chmod(home, 0o700), os.Chown(home, id, id)); err != nil {
					return "", err
				}
			}
		}
	}
	return dir, nil
}

// copyJail copies a tree by hard links, with a version of its own in etc/gojail-jail.
func copyJail(from, to, version string) error {
	if out, err := exec.Command("cp", "-al", from, to).CombinedOutput(); err != nil {
		return fmt.Errorf("copy the jail: %w: %s", err, out)
	}
	file := filepath.Join(to, "etc/gojail-jail")
	return errors.Join(os.Remove(file), os.WriteFile(file, []byte(version+"\n"), 0o644))
}

// restoreBed puts right what a test did to the network, and forgets templates.
func (b *testBed) restoreBed(t *testing.T) {
	for _, h := range b.hosts {
		require.NoError(t, h.client.Restore())
	}
	if !b.waitForNoJob() || b.cluster.Drained() != "" {
		t.Errorf("a test leaves its nodes empty and up: %s%s", b.cluster.Root("squeue", "-h").Stdout, b.cluster.Drained())
	}
	for _, node := range harness.Nodes {
		if b.cluster.Drained() != "" {
			b.cluster.Resume(node)
		}
		if r := b.hosts[node].runGojail("reload"); r.Code != 0 {
			t.Errorf("gojail reload: %s", r)
		}
	}
}

// waitForNoJob waits until Slurm has no job any more. (What sinfo says of a node may be that of
// the last job's last second, until something else changes: select_p_select_nodeinfo_set_all.)
func (b *testBed) waitForNoJob() bool {
	return harness.Poll(harness.Timeout, func() bool { return b.cluster.Root("squeue", "-h").Stdout == "" })
}

// Stop ends all of it. A mount whose server is gone would keep the cluster's end waiting: the cluster goes first.
func (b *testBed) Stop() error {
	var all []error
	if b.cluster != nil {
		all = append(all, b.cluster.Stop())
	}
	for _, h := range b.hosts {
		if h != nil {
			h.client.Close()
		}
	}
	if b.server != nil {
		all = append(all, b.server.Close(), os.RemoveAll(b.server.Dir))
	}
	return errors.Join(all...)
}

// configure puts a configuration in place for the rest of the test.
func (b *testBed) configure(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, b.cluster.WriteConfig(text))
	t.Cleanup(func() { require.NoError(t, b.cluster.WriteConfig(config)) })
}

// serverPath is where this machine has a file of a tree, beside the server: it never hangs.
func (b *testBed) serverPath(path ...string) string {
	return filepath.Join(append([]string{b.server.Dir}, path...)...)
}

// readFile is the text of a file of a tree, "" where there is none.
func (b *testBed) readFile(path ...string) string {
	text, _ := os.ReadFile(b.serverPath(path...))
	return strings.TrimSpace(string(text))
}

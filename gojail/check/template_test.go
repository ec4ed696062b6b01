// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/state/statetest"
	"github.com/gojail/gojail/internal/nstest"
)

// addTemplate starts a process with that root, and records it as the template of jail a.
func (n *checkedNode) addTemplate(t *testing.T) {
	t.Helper()
	stop, err := addTemplate(n.State, n.root)
	require.NoError(t, err)
	t.Cleanup(stop)
}

func addTemplate(stateDir, root string) (stop func(), err error) {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return nil, err
	}
	program := filepath.Join(root, "busybox")
	if out, err := exec.Command("cp", busybox, program).CombinedOutput(); err != nil {
		return nil, &exec.Error{Name: string(out), Err: err}
	}
	cmd := exec.Command("/busybox", "sleep", "1000")
	cmd.SysProcAttr, cmd.Dir = &syscall.SysProcAttr{Chroot: root}, "/"
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() { cmd.Process.Kill(); cmd.Wait() }
	if err := os.Chmod(stateDir, 0o700); err != nil {
		return stop, err
	}
	s, err := state.OpenState(stateDir)
	if err != nil {
		return stop, err
	}
	record, err := statetest.ReadRecordOf(cmd.Process.Pid)
	if err != nil {
		return stop, err
	}
	if err := os.MkdirAll(s.JailDir("a"), 0o700); err != nil {
		return stop, err
	}
	return stop, os.WriteFile(s.ZygoteRecord("a"), []byte(record), 0o600)
}

// A template of another tree than the next job's is named with both, and fails nothing.
func TestTemplateOfAnotherTree(t *testing.T) {
	if _, err := exec.LookPath("busybox"); err != nil {
		t.Skip("needs busybox-static: make deps")
	}
	n := newGoodNode(t)
	n.addTemplate(t)
	assert.Empty(t, n.listFindings())
	old, err := identify(n.root)
	require.NoError(t, err)
	require.NoError(t, os.Rename(n.root, n.dir+"/v1"))
	require.NoError(t, exec.Command("cp", "-a", n.dir+"/v1", n.dir+"/v2").Run())
	require.NoError(t, os.Symlink("v2", n.root))
	now, err := identify(n.root)
	require.NoError(t, err)
	assert.Equal(t, "WARN  jail a: its template on this node has another root, "+old+", than "+n.root+", which leads to "+now+
		"; the next job gets a new template; to make it now: gojail reload a", n.listFindings())
	require.NoError(t, os.Remove(n.root))
	require.NoError(t, os.Symlink("v1", n.root))
	assert.Empty(t, n.listFindings())
}

func init() {
	// The input is the node's directory: its jail is shown by a server that ends and is started anew.
	nstest.Actions["staleTemplate"] = func(dir string) (any, error) {
		if err := nstest.MakePrivate(); err != nil {
			return nil, err
		}
		n := &checkedNode{dir: dir, root: dir + "/jail", conf: dir + "/slurm"}
		n.Node = Node{Config: dir + "/gojail.toml", State: dir + "/state", Name: "n1", LibDir: dir + "/lib", passwdIn: dir + "/passwd"}
		if err := os.Rename(n.root, dir+"/tree"); err != nil {
			return nil, err
		}
		if err := os.Mkdir(n.root, 0o755); err != nil {
			return nil, err
		}
		end, err := nstest.MountFUSE(dir+"/tree", n.root)
		if err != nil {
			return nil, err
		}
		stop, err := addTemplate(n.State, n.root)
		if stop != nil {
			defer stop()
		}
		if err != nil {
			return nil, err
		}
		found := []string{n.listFindings()}
		end()
		if end, err = nstest.MountFUSE(dir+"/tree", n.root); err != nil {
			return nil, err
		}
		defer end()
		return append(found, n.listFindings()), nil
	}
}

// The server of a FUSE file system ended and was started anew, as after ESTALE of NFS: the path is in
// order, and every job on this node would fail.
func TestTemplateOfStorageThatIsGone(t *testing.T) {
	nstest.NeedFUSE(t)
	n := newGoodNode(t)
	var found []string
	require.NoError(t, nstest.RunText(t, "staleTemplate", n.dir, &found))
	assert.Empty(t, found[0])
	assert.Regexp(t, `^WARN  jail a: the root of its template on this node is gone from the storage: transport endpoint is not connected; `+
		n.root+` leads to device 0:\d+ inode \d+; the next job gets a new template; to make it now: gojail reload a$`, found[1])
}

// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
)

// listFailures returns the failures of the node, and those that users can cause.
func (n *checkedNode) listFailures() (node, content string) {
	lines := map[bool][]string{}
	Check(n.Node, func(f Finding) {
		if f.Level == Fail {
			lines[f.Content] = append(lines[f.Content], f.String())
		} else if f.Content {
			lines[true] = append(lines[true], "not a failure: "+f.String())
		}
	})
	return strings.Join(lines[false], "\n"), strings.Join(lines[true], "\n")
}

// A user who may change a jail's tree can make launches fail in that jail. The check
// tells such failures from those of the node.
func TestCheckTellsWhatUsersCanBringAbout(t *testing.T) {
	const user = 65534
	mkdir := func(t *testing.T, path string, uid int) {
		require.NoError(t, os.Mkdir(path, 0o755))
		require.NoError(t, os.Chown(path, uid, uid))
	}
	mount := func(source, destination string) string {
		return fmt.Sprintf("[[jail.a.mounts]]\nsource = %q\ndestination = %q\n", source, destination)
	}
	for name, test := range map[string]struct {
		spoil         func(t *testing.T, n *checkedNode)
		node, content string
	}{
		"target in root's tree": {func(t *testing.T, n *checkedNode) { os.Remove(n.root + "/tmp") }, "mount targets are missing in", ""},
		"target in a user's tree": {func(t *testing.T, n *checkedNode) {
			os.Chown(n.root, user, user)
			os.Remove(n.root + "/tmp")
		}, "", "mount targets are missing in"},
		"target in an open tree": {func(t *testing.T, n *checkedNode) {
			os.Chmod(n.root, 0o775)
			os.Remove(n.root + "/tmp")
		}, "", "mount targets are missing in"},
		"some targets below a user's directory": {func(t *testing.T, n *checkedNode) {
			os.Remove(n.root + "/tmp")
			mkdir(t, n.root+"/home", 0)
			mkdir(t, n.root+"/home/u", user)
			n.configure(t, mount("/var", "/home/u/data"))
		}, ": /tmp;", ": /home/u/data;"},
		"target behind a link to a user's directory": {func(t *testing.T, n *checkedNode) {
			mkdir(t, n.root+"/u", user)
			os.Symlink("/u", n.root+"/data")
			n.configure(t, mount("/var", "/data/x"))
		}, "", ": /data/x;"},
		"target behind a link in a user's directory": {func(t *testing.T, n *checkedNode) {
			mkdir(t, n.root+"/u", user)
			mkdir(t, n.root+"/mine", 0)
			os.Symlink("../mine", n.root+"/u/link")
			os.Symlink("u/link", n.root+"/data")
			n.configure(t, mount("/var", "/data/x"))
		}, "", ": /data/x;"},
		"target behind root's links": {func(t *testing.T, n *checkedNode) {
			mkdir(t, n.root+"/mine", 0)
			os.Symlink("mine", n.root+"/data")
			n.configure(t, mount("/var", "/data/x"))
		}, ": /data/x;", ""},
		"a file in the target's place": {func(t *testing.T, n *checkedNode) {
			os.Chown(n.root, user, user)
			os.Remove(n.root + "/tmp")
			n.writeFile(t, "jail/tmp", "", 0o644)
		}, "", "must be a directory"},
		"root's tree empty": {func(t *testing.T, n *checkedNode) {
			os.RemoveAll(n.root)
			mkdir(t, n.root, 0)
		}, "is empty", ""},
		"a user's tree empty": {func(t *testing.T, n *checkedNode) {
			os.RemoveAll(n.root)
			mkdir(t, n.root, user)
		}, "", "is empty"},
		"root's tree gone": {func(t *testing.T, n *checkedNode) { os.RemoveAll(n.root) }, "jail root", ""},
		"a tree gone whose users may be root in it": {func(t *testing.T, n *checkedNode) {
			n.configure(t, "jail_root = [\"range\"]")
			os.RemoveAll(n.root)
		}, "jail root", ""},
		"a file in the place of a tree whose users may be root in it": {func(t *testing.T, n *checkedNode) {
			n.configure(t, "jail_root = [\"self\", \"range\"]")
			os.RemoveAll(n.root)
			n.writeFile(t, "jail", "", 0o644)
		}, "is not a directory", ""},
		"a tree emptied by users who may be root in it, which a template shows": {func(t *testing.T, n *checkedNode) {
			n.configure(t, "jail_root = [\"range\"]")
			n.addTemplate(t)
			entries, err := os.ReadDir(n.root)
			require.NoError(t, err)
			for _, e := range entries {
				require.NoError(t, os.RemoveAll(filepath.Join(n.root, e.Name())))
			}
		}, "", "is empty"},
		"the mount point of a tree whose users may be root in it": {func(t *testing.T, n *checkedNode) {
			n.configure(t, "jail_root = [\"range\"]")
			n.addTemplate(t)
			require.NoError(t, os.Rename(n.root, n.dir+"/away"))
			mkdir(t, n.root, 0)
		}, "is empty: is its storage mounted?", ""},
		"the mount point of a tree whose users may be root in it, without a template": {func(t *testing.T, n *checkedNode) {
			n.configure(t, "jail_root = [\"range\"]")
			os.RemoveAll(n.root)
			mkdir(t, n.root, 0)
		}, "is empty: is its storage mounted?", ""},
		"a tree gone from a jail whose users may be root in it": {func(t *testing.T, n *checkedNode) {
			require.NoError(t, os.Chmod(n.dir, 0o700)) // nobody reaches set-user-ID files
			n.configure(t, "jail_root = [\"range\"]\n[jail.b]\nroot = \""+n.root+"/opt/b\"\nslurm = false\nhost = []\n")
		}, "", "jail b: jail root"},
		"a tree gone from a user's directory": {func(t *testing.T, n *checkedNode) {
			os.RemoveAll(n.root)
			mkdir(t, n.dir+"/home", user)
			n.root = n.dir + "/home/jail"
			n.configure(t, "")
		}, "", "jail root"},
		"root's source gone": {func(t *testing.T, n *checkedNode) { n.configure(t, mount("/nonexistent", "/etc")) }, "/nonexistent (for /etc)", ""},
		"a user's source gone": {func(t *testing.T, n *checkedNode) {
			mkdir(t, n.dir+"/home", user)
			n.configure(t, mount(n.dir+"/home/x", "/etc"))
		}, "", "/home/x (for /etc)"},
		"a file in a user's source's place": {func(t *testing.T, n *checkedNode) {
			mkdir(t, n.dir+"/home", user)
			n.writeFile(t, "home/x", "", 0o644)
			n.configure(t, mount(n.dir+"/home/x", "/etc"))
		}, "", "must be a file"},
		"state full, where only root writes": {func(t *testing.T, n *checkedNode) { n.mountFullTmpfs(t, "state", "size=64k,mode=700") },
			"state is full (space)", ""},
		"state full, beside scratch": {func(t *testing.T, n *checkedNode) {
			n.mountFullTmpfs(t, "disk", "size=64k,mode=700")
			mkdir(t, n.dir+"/disk/state", 0)
			require.NoError(t, os.Chmod(n.dir+"/disk/state", 0o700))
			mkdir(t, n.dir+"/disk/scratch", 0)
			n.State, n.procIn = n.dir+"/disk/state", n.dir+"/proc" // others may have processes on this machine
			n.writeFile(t, "gojail.toml", strings.Replace(n.readFile(t, "gojail.toml"), n.dir+"/scratch", n.dir+"/disk/scratch", 1), 0o644)
		}, "scratch is full (space)", "state is full (space)"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newGoodNode(t)
			test.spoil(t, n)
			node, content := n.listFailures()
			for want, got := range map[*string]string{&test.node: node, &test.content: content} {
				if *want == "" {
					assert.Empty(t, got)
				}
				assert.Contains(t, got, *want)
			}
		})
	}
}

func (n *checkedNode) mountTmpfs(t *testing.T, name, options string) {
	dir := filepath.Join(n.dir, name)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, unix.Mount("none", dir, "tmpfs", 0, "mode=755,"+options))
	t.Cleanup(func() { unix.Unmount(dir, 0) })
}

func (n *checkedNode) mountFullTmpfs(t *testing.T, name, options string) {
	n.mountTmpfs(t, name, options)
	err := os.WriteFile(filepath.Join(n.dir, name, "full"), make([]byte, 1<<20), 0o600)
	require.ErrorIs(t, err, unix.ENOSPC)
}

// A user who is root in the jail may change all of it.
func TestContentOfAJailWithARootOfItsOwn(t *testing.T) {
	n := newGoodNode(t)
	j := &config.Jail{Name: "a", Root: n.root}
	assert.False(t, isContent(j, "/etc/x"))
	j.Isolation.JailRoot = []string{"self"}
	assert.False(t, isContent(j, "/etc/x"), "who is root of his own files alone")
	j.Isolation.JailRoot = []string{"self", "range"}
	assert.True(t, isContent(j, "/etc/x"))
}

// What a user may make in the tree keeps neither the check nor a launch busy until it looks as
// though the storage hung; where the data directories are named, jobs start all the same.
func TestTreeWithoutEnd(t *testing.T) {
	n := newGoodNode(t)
	for i := range node.TopMax {
		require.NoError(t, os.Mkdir(fmt.Sprint(n.root, "/", i), 0o755))
	}
	const found = " has more than 4096 entries, too many to search for data directories; " +
		`remove entries, or name the data directories in gojail.toml: data = ["/home"]`
	assert.Contains(t, n.listFindings(), "FAIL  jail a: jail root "+n.root+found)
	onNode, content := n.listFailures()
	assert.Empty(t, onNode)
	assert.NotEmpty(t, content)
	c, err := node.Load(n.Config, n.Name)
	require.NoError(t, err)
	_, err = node.ReadHost(c, c.Jails["a"], n.State)
	assert.EqualError(t, err, "jail root "+n.root+found)

	require.NoError(t, os.Mkdir(filepath.Join(n.root, "home"), 0o755))
	n.configure(t, `data = ["/home", "/none"]`)
	assert.NotContains(t, n.listFindings(), found)
	c, err = node.Load(n.Config, n.Name)
	require.NoError(t, err)
	facts, err := node.ReadHost(c, c.Jails["a"], n.State)
	require.NoError(t, err)
	assert.Equal(t, []node.Top{{Name: "home"}}, facts.JailTop)

	n.writeFile(t, "jail/etc/passwd", strings.Repeat("a\n", passwdMax/2)+"daemon:x:1:1::/:/bin/sh\n", 0o644)
	root, err := node.OpenJail(&config.Jail{Root: n.root})
	require.NoError(t, err)
	defer unix.Close(root)
	known, err := hasAccount(root, "daemon")
	require.NoError(t, err)
	assert.False(t, known, "what is beyond its most is not read")
}

// A process of a user is never read, whatever it calls itself.
func TestCheckReadsNoProcessOfAUser(t *testing.T) {
	n := newGoodNode(t)
	const name = "gojail-notaname" // 15 bytes
	var pids []int
	for _, uid := range []uint32{0, 65534} {
		cmd := exec.Command(filepath.Join(n.dir, name), "60")
		require.NoError(t, exec.Command("cp", "--remove-destination", "/bin/sleep", cmd.Path).Run())
		cmd.SysProcAttr = &unix.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		pids = append(pids, cmd.Process.Pid)
	}
	assert.Equal(t, pids[:1], findProcesses(name))
}

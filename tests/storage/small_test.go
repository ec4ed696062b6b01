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

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// programs are all that a small jail has.
var programs = []string{"sh", "cat", "echo", "id", "ls", "sleep", "true"}

// makeSmallJail makes a jail of a few programs and their libraries, quick to copy and to
// replace, whose etc/gojail-jail has the version. The mount targets are made by init.
func makeSmallJail(t *testing.T, to, version string) {
	t.Helper()
	repository, err := harness.Repository()
	require.NoError(t, err)
	from := filepath.Join(repository, "build/cache/jail-"+harness.Release())
	wanted := map[string]bool{"/etc/passwd": true, "/etc/group": true, "/etc/nsswitch.conf": true}
	for _, program := range programs {
		wanted["/usr/bin/"+program] = true
		out, err := exec.Command("chroot", from, "ldd", "/usr/bin/"+program).Output()
		require.NoError(t, err)
		for word := range strings.FieldsSeq(string(out)) {
			if strings.HasPrefix(word, "/") {
				wanted[filepath.Join("/usr", strings.TrimPrefix(word, "/usr"))] = true
			}
		}
	}
	for file := range wanted {
		target := filepath.Join(to, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o755))
		out, err := exec.Command("cp", "-L", filepath.Join(from, file), target).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		require.NoError(t, os.MkdirAll(filepath.Join(to, "usr", dir), 0o755))
		require.NoError(t, os.Symlink("usr/"+dir, filepath.Join(to, dir)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(to, "etc/gojail-jail"), []byte(version+"\n"), 0o644))
	home := filepath.Join(to, "home/alice")
	require.NoError(t, errors.Join(os.MkdirAll(home, 0o755), os.Chown(home, 5001, 5001), os.Chmod(to, 0o755)))
}

// makeStaging makes a small jail in the tree open, for the rest of the test, and returns
// its name: a new one each time, since clients remember for a minute what a name was.
func (b *testBed) makeStaging(t *testing.T, version string) string {
	t.Helper()
	dir, err := os.MkdirTemp(b.serverPath("open"), "staging-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	makeSmallJail(t, dir, version)
	return filepath.Base(dir)
}

// addJail adds a jail to the configuration for the rest of the test.
func (b *testBed) addJail(t *testing.T, name, root, more string) {
	t.Helper()
	b.configure(t, fmt.Sprintf("%s\n[jail.%s]\nroot = %q\n%s\n", config, name, root, more))
}

// initializeJail makes a jail's mount targets, on the host that the exports trust.
func (b *testBed) initializeJail(t *testing.T, jail string) {
	t.Helper()
	for _, node := range harness.Nodes {
		r := b.hosts["admin"].runGojailOf(node, "init", jail)
		require.Zero(t, r.Code, r)
	}
}

// mountMore mounts a path of the server's on /nfs/more of each host, for the rest of the test.
func (b *testBed) mountMore(t *testing.T, path string, options ...string) {
	t.Helper()
	for _, h := range b.hosts {
		require.NoError(t, h.mountPath("4.2", path, "/nfs/more", append([]string{"nosuid", "nodev"}, options...)...))
		t.Cleanup(func() {
			if r := h.runAsRoot("umount", "-l", "/nfs/more"); r.Code != 0 {
				t.Error(r)
			}
		})
	}
}

// exportMore exports a path of the server's as it is, for the rest of the test.
func (b *testBed) exportMore(t *testing.T, path, options string, fsid int, clients ...string) {
	t.Helper()
	for _, client := range clients {
		require.NoError(t, b.server.Export(path, client, options, fsid))
		t.Cleanup(func() {
			if err := b.server.Unexport(path, client); err != nil {
				t.Error(err)
			}
		})
	}
}

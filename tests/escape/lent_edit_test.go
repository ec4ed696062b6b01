// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// lentToEdit are attacks of a program of the jail that root edits, besides those of lent: it is root of the tree.
var lentToEdit = append([]string{"view", "setns", "handle", "unmask", "fresh-mounts", "sysctl", "mknod", "init_module"}, slices.DeleteFunc(slices.Clone(lent),
	func(name string) bool { return slices.Contains([]string{"others-home", "roots-file"}, name) })...)

// asRootOfTree is what package managers do.
const asRootOfTree = `set -e
umask 022; mkdir -p /var/lib/own; chown 100:100 /var/lib/own; echo secret >/etc/of-root; chmod 600 /etc/of-root
cat /etc/of-root
stat -c '%u:%g %a' /var/lib/own /etc/of-root; id -u; rm -r /etc/left`

// storeHostileJail builds jail "hostile" in a store, which lies on a file system of the given type.
func (s *site) storeHostileJail(t *testing.T, fstype string) {
	t.Helper()
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Skip("needs busybox-static: make deps")
	}
	attack, err := os.ReadFile(s.Path(attackPath))
	require.NoError(t, err)
	tree := s.Path("/srv/hostile")
	t.Cleanup(func() { os.RemoveAll(tree) })
	for path, text := range map[string][]byte{"bin/busybox": busybox, "opt/attack": attack, "etc/left": []byte("x")} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(tree, path)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(tree, path), text, 0o755))
	}
	for _, name := range []string{"sh", "cat", "mkdir", "chown", "chmod", "stat", "id", "rm", "touch"} {
		require.NoError(t, os.Symlink("busybox", filepath.Join(tree, "bin", name)))
	}
	require.NoError(t, os.Mkdir(s.Path("/srv/store"), 0o755))
	t.Cleanup(func() { s.Root("umount", "-l", "/srv/store"); os.RemoveAll(s.Path("/srv/store")) })
	if fstype != "" {
		r := s.Root("mount", "-t", fstype, "store", "/srv/store")
		require.Zero(t, r.Code, r)
	}
	require.NoError(t, s.WriteConfig("store = \"/srv/store\"\n"+configuration+"[jail.stored]\nroot = \"store:hostile\"\nslurm = false\n"))
	t.Cleanup(func() { require.NoError(t, s.WriteConfig(configuration)) })
	for _, args := range [][]string{{"build", "hostile", "--from", "dir:/srv/hostile"}, {"switch", "hostile"}} {
		r := s.Gojail("n1", append([]string{"jail"}, args...)...)
		require.Zero(t, r.Code, r)
	}
}

// TestHostileEdit has an administrator who edits a jail whose programs use all that they are lent. They are root of the copy, and of nothing else.
func TestHostileEdit(t *testing.T) {
	s := sharedSite(t)
	abstract, uid := []string{"abstract-socket", "abstract-pair"}, []string{"node-uid"}
	for _, store := range []struct {
		name, fstype string
		kernel       []string // stands before the command
		allowed      []string
	}{
		{name: "where ids can be mapped"},
		{name: "where ids cannot be mapped", fstype: "ramfs", allowed: uid},
		{name: "where ids can be mapped, without Landlock", kernel: []string{attackPath, "without-landlock"}, allowed: abstract},
		{name: "where ids cannot be mapped, without Landlock", fstype: "ramfs", kernel: []string{attackPath, "without-landlock"}, allowed: uid},
	} {
		t.Run(store.name, func(t *testing.T) {
			s.startVictim(t, "node", onNode)
			s.storeHostileJail(t, store.fstype)
			edit := append(store.kernel, "gojail", "--node=n1", "--state=/run/gojail/%n", "jail", "edit", "hostile", "--")
			for attack, v := range s.runAttacks(t, place{user: "root", command: edit}, lentToEdit...) {
				if !slices.Contains(store.allowed, attack) {
					assert.Equal(t, held, v.word, "%s: %s", attack, v)
				}
			}
			r := s.Root(append(edit, "sh", "-c", asRootOfTree)...)
			require.Zero(t, r.Code, r)
			assert.True(t, strings.HasPrefix(r.Stdout, "secret\n100:100 755\n0:0 600\n0\n"), r)
			versions, err := filepath.Glob(s.Path("/srv/store/hostile/versions/*"))
			require.NoError(t, err)
			newest := slices.Max(versions)
			harness.RequireOutput(t, "100:100\n0:0", s.Root("sh", "-c", "cd /srv/store/hostile/versions/"+filepath.Base(newest)+" && stat -c %u:%g var/lib/own etc/of-root"))
			assert.NoFileExists(t, filepath.Join(newest, "etc/left"))
		})
	}
}

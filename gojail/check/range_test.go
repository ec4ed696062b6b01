// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/nstest"
)

func init() {
	nstest.Actions["tryRange"] = func(dir string) (any, error) {
		if err := nstest.MakePrivate(); err != nil {
			return nil, err
		}
		layers := "lowerdir=" + dir + "/lower,upperdir=" + dir + "/upper,workdir=" + dir + "/work"
		if out, err := exec.Command("mount", "-t", "overlay", "-o", layers, "overlay", dir+"/overlay").CombinedOutput(); err != nil {
			return string(out), err
		}
		found := map[string]string{}
		for name, j := range map[string]*config.Jail{
			"disk":    {Root: dir + "/lower"},
			"overlay": {Root: dir + "/overlay"},
			"data":    {Root: dir + "/lower", Mounts: []config.Mount{{Destination: "/data", Type: "bind", Source: dir + "/overlay"}}},
			"read":    {Root: dir + "/lower", Mounts: []config.Mount{{Destination: "/data", Type: "bind", Source: dir + "/overlay", Options: []string{"ro"}}}},
			"no data": {Root: dir + "/lower", Mounts: []config.Mount{{Destination: "/opt/x", Type: "bind", Source: dir + "/overlay"}}},
		} {
			j.Isolation.NoNewPrivs = true
			c := &config.Config{Jails: map[string]*config.Jail{name: j}}
			root, err := node.OpenJail(j)
			if err != nil {
				return nil, err
			}
			if remedy, err := (&checker{config: c, ids: &userNamespace{}}).checkRange(j, root); err != nil {
				found[name] = err.Error() + "; " + remedy
			}
			unix.Close(root)
		}
		return found, nil
	}
}

// TestCheckTriesIDMaps: the file systems themselves are asked, as a launch asks them.
func TestCheckTriesIDMaps(t *testing.T) {
	nstest.NeedRoot(t)
	dir, err := os.MkdirTemp("/var/tmp", "gojail-range-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, sub := range []string{"lower", "upper", "work", "overlay"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	var found map[string]string
	require.NoError(t, nstest.RunText(t, "tryRange", dir, &found))
	want := `--jail-root=range: the file system of ` + dir + `/overlay cannot map ids (invalid argument); remove "range" from jail_root, or use ext4, xfs or btrfs there`
	assert.Equal(t, map[string]string{"overlay": want, "data": want}, found)
}

// TestCheckSaysOnceHowToCloseARange: the finding has one remedy.
func TestCheckSaysOnceHowToCloseARange(t *testing.T) {
	n := newGoodNode(t)
	n.configure(t, `jail_root = ["range"]`)
	found := n.listFindings()
	assert.Contains(t, found, "FAIL  jail a: --jail-root=range: a set-user-ID file created in the jail could be executed on the node in "+n.root+"; ")
	assert.Equal(t, 1, strings.Count(found, "chmod 700 "+n.dir), found)
	require.NoError(t, os.Chmod(n.dir, 0o700))
	assert.NotContains(t, n.listFindings(), "range")
}

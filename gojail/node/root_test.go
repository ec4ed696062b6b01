// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/nstest"
)

// TestOpenJailThroughLinks: who can exchange a link on the way to a root would choose what is the root of others' jobs.
func TestOpenJailThroughLinks(t *testing.T) {
	nstest.NeedRoot(t)
	const user = 1000
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o755))
	for _, name := range []string{"other", "real/jail", "users", "roots"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	require.NoError(t, os.Chown(dir+"/users", user, user))
	link := func(target, name string, uid int) {
		require.NoError(t, os.Symlink(target, dir+"/"+name))
		require.NoError(t, os.Lchown(dir+"/"+name, uid, uid))
	}
	require.NoError(t, os.Mkdir(dir+"/users/jail", 0o755))
	link(dir+"/other", "users/own", user)
	link(dir+"/other", "users/roots", 0)
	link(dir+"/users", "roots/users", 0)
	link("../real", "roots/dir", 0)
	link("real/jail", "current", 0)
	link(dir+"/other", "given", user)
	for path, refused := range map[string]string{
		"real/jail":       "",
		"current":         "",
		"roots/dir/jail":  "",
		"users/jail":      "",
		"users/own":       "/users/own: is a symbolic link of uid 1000, a user, and not of root",
		"users/roots":     "/users: belongs to uid 1000, a user, and not to root",
		"roots/users/own": "/users/own: is a symbolic link of uid 1000, a user, and not of root",
		"given":           "/given: is a symbolic link of uid 1000, a user, and not of root",
	} {
		root, err := OpenJail(&config.Jail{Name: "a", Root: dir + "/" + path})
		if refused == "" {
			require.NoError(t, err, path)
			unix.Close(root)
			continue
		}
		require.Error(t, err, path)
		assert.Contains(t, err.Error(), "jail root "+dir+"/"+path+" is reached by a symbolic link that users can exchange: "+dir+refused)
	}
	_, err := OpenJail(&config.Jail{Name: "a", Root: dir + "/missing"})
	assert.EqualError(t, err, "jail root "+dir+"/missing does not exist")
}

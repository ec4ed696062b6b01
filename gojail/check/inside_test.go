// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
)

// TestMountsBehindLinks: what a mount shows is there also by a link of the root, and only by one that the root has.
func TestMountsBehindLinks(t *testing.T) {
	const shell = "/bin/sh"
	for name, row := range map[string]struct {
		links   map[string]string
		files   []string
		mount   string
		missing string // what findMissingShell returns
	}{
		"nothing":                       {missing: "has no /bin/sh"},
		"file":                          {files: []string{"bin/sh"}},
		"mount of the directory":        {mount: "/bin"},
		"mount of the file":             {mount: shell},
		"link of the directory":         {links: map[string]string{"bin": "usr/bin"}, mount: "/usr"},
		"absolute link":                 {links: map[string]string{"bin": "/usr/bin"}, mount: "/usr"},
		"link to the mount":             {links: map[string]string{"bin": "opt"}, mount: "/opt"},
		"link of the file":              {links: map[string]string{"bin/sh": "../opt/dash"}, mount: "/opt"},
		"link of the directory above /": {links: map[string]string{"bin": "../../usr/bin"}, mount: "/usr"},
		"no link":                       {mount: "/usr", missing: "has no /bin/sh"},
		"link to another place":         {links: map[string]string{"bin": "opt/bin"}, mount: "/usr", missing: "has no /bin/sh"},
		"link of the file to nowhere":   {links: map[string]string{"bin/sh": "/opt/dash"}, mount: "/usr", missing: "has a /bin/sh that leads to /opt/dash, which is missing"},
	} {
		dir := t.TempDir()
		for _, file := range row.files {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), nil, 0o755))
		}
		for link, target := range row.links {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o755))
			require.NoError(t, os.Symlink(target, filepath.Join(dir, link)))
		}
		root, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		isMounted := func(path string) bool { return row.mount != "" && config.Under(path, row.mount) }
		assert.Equal(t, row.missing, findMissingShell(root, isMounted), name)
		assert.Equal(t, row.missing != "", isMissingIn(root, shell, isMounted), name)
		unix.Close(root)
	}
}

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestForeignDirs(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"ld.so.conf":          "include ld.so.conf.d/*.conf other.conf\n/boot # of nobody\nhwcap 1 nosegneg\n",
		"ld.so.conf.d/a.conf": "# comment\n/usr/local/lib\n/home/\n/etc/x=libc6\n/\n",
		"ld.so.conf.d/b.conf": "include " + dir + "/ld.so.conf\n/srv =libc6\n/home\n/nosuch/lib\nseccomp\n/tmp\n",
		"other.conf":          "  /mnt  \n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	assert.Equal(t, []string{"/boot", "/home", "/mnt", "/srv"}, findForeignDirs(filepath.Join(dir, "ld.so.conf")))
	assert.Empty(t, findForeignDirs(filepath.Join(dir, "nosuch")))
}

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// tmpfiles are lines of tmpfiles.d(5), and what they create: a directory, "PATH -> TARGET", or nothing.
var tmpfiles = map[string]string{
	"d /run/screen 1777 root utmp":                 "/run/screen",
	"d /run/screen 0777 root utmp -":               "/run/screen",
	"D! /run/box 1777 root root 10d":               "/run/box",
	"q /var/run/box ~1777":                         "/run/box",
	"d= /run/a/b/ :0777 - - -":                     "/run/a/b",
	"  d \t/run/box  1777  ":                       "/run/box",
	"L /run/shm - - - - /dev/shm":                  "/run/shm -> /dev/shm",
	"L+ /run/shm - - - - ../dev/shm":               "/run/shm -> ../dev/shm",
	"L? /run/shm - - - - /dev/shm":                 "/run/shm -> /dev/shm",
	"d /run/lock/subsys 0755 root root -":          "", // nobody but root may write to it
	"d /run/postgresql 2775 postgres postgres - -": "",
	"d /run/user":                                  "",
	"d /run/user - - - -":                          "",
	"d /run/box rwx":                               "",
	"d /run 1777":                                  "",
	"d /run/ 1777":                                 "",
	"d /running 1777":                              "",
	"d /tmp/box 1777":                              "",
	"d /run/../etc 1777":                           "",
	"d /run//box 1777":                             "",
	"d run/box 1777":                               "",
	"d /run/%m 1777":                               "",
	"d \"/run/box\" 1777":                          "",
	"d /run/b\\x20x 1777":                          "",
	"d /run/b\x1bx 1777":                           "",
	"d /run/" + strings.Repeat("x", 240) + " 1777": "",
	"L /run/shm":                                   "", // a link into /usr/share/factory
	"L /run/shm - - - - -":                         "",
	"f /run/box 0666 - - - text":                   "",
	"x /run/box":                                   "",
	"#d /run/box 1777":                             "",
	"":                                             "",
	"d":                                            "",
	"z /run/box 1777":                              "",
	"C /run/box 1777 - - - /etc":                   "",
	"a+ /run/box - - - - d:group::rwx":             "",
	"d /run/box 1777\nd /run/box 0755":             "/run/box",
	"d /run/box 0755\nd /run/box 1777":             "",
	"d /run/b 1777\nL /run/a - - - - b\nd /run/%H 1777\nd /run/c 1": "/run/a -> b\n/run/b",
}

// listRunEntries returns what the tmpfiles.d of a tree creates, one entry a line.
func listRunEntries(t *testing.T, tree string) string {
	t.Helper()
	root, err := unix.Open(tree, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(root)
	var lines []string
	for _, e := range readRunEntries(root) {
		if e.Link != "" {
			e.Path += " -> " + e.Link
		}
		lines = append(lines, e.Path)
	}
	return strings.Join(lines, "\n")
}

// writeTree writes files into a new tree; text that begins with "->" is the target of a link.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	tree := t.TempDir()
	for name, text := range files {
		path := filepath.Join(tree, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if to, link := strings.CutPrefix(text, "->"); link {
			require.NoError(t, os.Symlink(to, path))
		} else {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
	return tree
}

func TestRunEntriesOfEachLine(t *testing.T) {
	for line, want := range tmpfiles {
		assert.Equal(t, want, listRunEntries(t, writeTree(t, map[string]string{"usr/lib/tmpfiles.d/a.conf": line})), line)
	}
}

func TestRunEntriesOfFiles(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"none": {nil, ""},
		"the administrator's file hides the package's": {map[string]string{
			"usr/lib/tmpfiles.d/screen.conf": "d /run/screen 1777\nd /run/other 1777", "etc/tmpfiles.d/screen.conf": "d /run/screen 0755",
		}, ""},
		"a link to /dev/null hides it, too": {map[string]string{
			"usr/lib/tmpfiles.d/screen.conf": "d /run/screen 1777", "etc/tmpfiles.d/screen.conf": "->/dev/null", "dev/null": "d /run/null 1777",
		}, "/run/null"}, // here it is a file
		"of two files the first by name counts": {map[string]string{
			"usr/lib/tmpfiles.d/a.conf": "d /run/x 0755", "etc/tmpfiles.d/b.conf": "d /run/x 1777\nd /run/y 1777",
		}, "/run/y"},
		"only .conf": {map[string]string{"etc/tmpfiles.d/a.conf.dpkg-old": "d /run/x 1777"}, ""},
		"a link of the tree": {map[string]string{
			"etc/tmpfiles.d": "->/usr/share/t", "usr/share/t/a.conf": "->../u.conf", "usr/share/u.conf": "d /run/x 1777",
		}, "/run/x"},
		"a link that would lead out of it": {map[string]string{"etc/tmpfiles.d/a.conf": "->../../../../../../../../etc/passwd"}, ""},
		"a directory":                      {map[string]string{"etc/tmpfiles.d/a.conf/b": "d /run/x 1777"}, ""},
	} {
		assert.Equal(t, test.want, listRunEntries(t, writeTree(t, test.files)), name)
	}
}

// TestRunEntriesOfUsers: a tree that users write hangs nobody, and costs little.
func TestRunEntriesOfUsers(t *testing.T) {
	var many strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&many, "d /run/%04d 1777\n", i)
	}
	files := map[string]string{"etc/tmpfiles.d/b.conf": many.String(), "etc/tmpfiles.d/c.conf": strings.Repeat("x", 1<<20) + "\nd /run/late 1777"}
	tree := writeTree(t, files)
	require.NoError(t, unix.Mkfifo(filepath.Join(tree, "etc/tmpfiles.d/a.conf"), 0o644))
	list := listRunEntries(t, tree)
	assert.Len(t, strings.Split(list, "\n"), runEntriesMax)
	assert.NotContains(t, list, "late")
}

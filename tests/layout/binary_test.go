// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// images are the suffixes of the only files that may hold anything but text.
var images = []string{".png", ".jpg", ".gif"}

// hasNUL reports whether a file holds a NUL byte, as every program, archive and object file does and no text does.
func hasNUL(text []byte) bool { return bytes.IndexByte(text, 0) >= 0 }

// go build leaves a program of 14 MB in the directory where it is called, and git add takes it.
func TestTrackedFilesAreText(t *testing.T) {
	if _, err := os.Stat("../../.git"); err != nil {
		t.Skip("needs git's list of files: this is an exported tree")
	}
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	require.Greater(t, len(names), 1000, "git lists the files of the repository")
	var found []string
	for _, name := range names {
		file := filepath.Join("../..", name)
		info, err := os.Lstat(file)
		if err != nil || !info.Mode().IsRegular() || slices.Contains(images, path.Ext(name)) {
			continue // removed, and not committed yet; or a link
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if hasNUL(text) {
			found = append(found, name+" is not text; take it out: git rm --cached "+name)
		}
	}
	failEach(t, found)
}

func TestHasNUL(t *testing.T) {
	program, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	assert.True(t, hasNUL(program))
	assert.False(t, hasNUL([]byte("#!/bin/sh\n")))
}

// SPDX-License-Identifier: Apache-2.0

// Package packages tests what make deb and make rpm make.
package packages

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// releases are the releases of Slurm that have a package, each with another one, whose package it refuses.
var releases = map[string]string{"22.05": "24.11", "24.11": "26.05", "26.05": "22.05"}

// run runs a program of the repository, and fails the test where it fails.
func run(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// build makes the packages of a kind in a new directory, below build/ as the compilers' paths are the same there.
// It returns their paths, relative to the repository.
func build(t *testing.T, kind string) []string {
	t.Helper()
	if why := harness.Missing(); why != "" {
		t.Skip(why)
	}
	if testing.Short() {
		t.Skip("builds packages")
	}
	dir, err := os.MkdirTemp("../../build", "packages-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	run(t, []string{"OUT=build/" + filepath.Base(dir)}, "packaging/build", kind)
	files, err := filepath.Glob(dir + "/*." + kind)
	require.NoError(t, err)
	require.Len(t, files, 1+len(releases))
	for i, file := range files {
		files[i], err = filepath.Rel("../..", file)
		require.NoError(t, err)
	}
	return files
}

// sumFiles returns the sums of files, by name.
func sumFiles(t *testing.T, files []string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile("../../" + file)
		require.NoError(t, err)
		sums[filepath.Base(file)] = fmt.Sprintf("%x", sha256.Sum256(text))
	}
	return sums
}

// TestDeb: the same bytes from the same sources; installed, upgraded, removed and purged; nothing for lintian to say.
func TestDeb(t *testing.T) {
	debs := build(t, "deb")
	assert.Equal(t, sumFiles(t, debs), sumFiles(t, build(t, "deb")))
	for release, other := range releases {
		t.Run(release, func(t *testing.T) {
			run(t, nil, "tests/releases/make", release)
			assert.Contains(t, run(t, nil, "tests/packages/inside", filepath.Dir(debs[0]), release, other), "\npassed\n")
		})
	}
	assert.Empty(t, run(t, nil, append([]string{"lintian", "--allow-root", "--tag-display-limit=0", "--fail-on=error,warning", "--display-level=warning"}, debs...)...))
}

// TestRPM: likewise, in a root whose RPM database has the packages that these need; nothing for rpmlint to say.
func TestRPM(t *testing.T) {
	rpms := build(t, "rpm")
	assert.Equal(t, sumFiles(t, rpms), sumFiles(t, build(t, "rpm")))
	for _, path := range rpms {
		run(t, nil, "rpm", "--nosignature", "-K", path)
	}
	assert.Contains(t, run(t, nil, "tests/packages/rpms", filepath.Dir(rpms[0])), "\npassed\n")
	assert.Contains(t, run(t, nil, append([]string{"rpmlint", "-c", "packaging/rpmlint.toml"}, rpms...)...), " 0 errors, 0 warnings,")
}

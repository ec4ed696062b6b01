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
func build(t *testing.T, kind string) string {
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
	run(t, []string{"OUT=build/" + filepath.Base(dir)}, "packaging/build", kind, "24.11", "26.05")
	return dir
}

// sums are the packages of a directory, by name.
func sums(t *testing.T, dir, kind string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(dir + "/*." + kind)
	require.NoError(t, err)
	require.Len(t, files, 3)
	all := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all[filepath.Base(file)] = fmt.Sprintf("%x", sha256.Sum256(text))
	}
	return all
}

// TestDeb: the same bytes from the same sources; installed, upgraded, removed and purged; nothing for lintian to say.
func TestDeb(t *testing.T) {
	first, second := build(t, "deb"), build(t, "deb")
	assert.Equal(t, sums(t, first, "deb"), sums(t, second, "deb"))
	assert.Contains(t, run(t, nil, "tests/packages/inside", "build/"+filepath.Base(first)), "\npassed\n")
	debs, err := filepath.Glob(first + "/*.deb")
	require.NoError(t, err)
	for i := range debs {
		debs[i] = "build/" + filepath.Base(first) + "/" + filepath.Base(debs[i])
	}
	assert.Empty(t, run(t, nil, append([]string{"lintian", "--allow-root", "--tag-display-limit=0", "--fail-on=error,warning", "--display-level=warning"}, debs...)...))
}

func TestRPM(t *testing.T) {
	first, second := build(t, "rpm"), build(t, "rpm")
	all := sums(t, first, "rpm")
	assert.Equal(t, all, sums(t, second, "rpm"))
	for name := range all {
		path := "build/" + filepath.Base(first) + "/" + name
		run(t, nil, "rpm", "--nosignature", "-K", path)
		if name == "gojail-slurm-24.11-0.1.0-1.x86_64.rpm" {
			needs := run(t, nil, "rpm", "-qp", "--requires", path)
			assert.Contains(t, needs, "slurm >= 24.11\n")
			assert.Contains(t, needs, "slurm < 24.12\n")
			assert.Equal(t, "gojail-slurm\n", run(t, nil, "rpm", "-qp", "--conflicts", path))
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package packages

import (
	"debug/elf"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestPackagesForARM64: packages for arm64 that this machine builds have the files of its own, each program and library is for arm64, and
// the commands run in an emulator.
func TestPackagesForARM64(t *testing.T) {
	if why := harness.Missing(); why != "" {
		t.Skip(why)
	}
	own, other := extractDebs(t, "x86_64", "amd64"), extractDebs(t, "aarch64", "arm64")
	assert.Equal(t, listFiles(t, own), listFiles(t, other))
	machines := map[string]elf.Machine{}
	for _, name := range listFiles(t, other) {
		if file, err := elf.Open(filepath.Join(other, name)); err == nil {
			machines[name] = file.Machine
			file.Close()
		}
	}
	assert.Len(t, machines, 10)
	for name, machine := range machines {
		assert.Equal(t, elf.EM_AARCH64, machine, name)
	}
	run(t, nil, "tests/deps.sh", "qemu-user-static")
	version := strings.TrimSpace(run(t, nil, "packaging/version"))
	for _, program := range []string{"gojail", "gojail-healthcheck", "gojail-exporter"} {
		out := run(t, nil, "qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu", filepath.Join(other, "usr/sbin", program), "--version")
		assert.Contains(t, out, version, program)
	}
}

// extractDebs makes the packages of an architecture, which make is given by either of its names, and returns a directory with their files.
func extractDebs(t *testing.T, machine, arch string) string {
	t.Helper()
	made, err := os.MkdirTemp(filepath.Join(repository, "build"), "packages-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(made) })
	run(t, []string{"OUT=build/" + filepath.Base(made)}, "make", "-s", "ARCH="+machine, "deb")
	debs, err := filepath.Glob(made + "/*_" + arch + ".deb")
	require.NoError(t, err)
	debs = slices.DeleteFunc(debs, func(deb string) bool { return strings.HasPrefix(filepath.Base(deb), "gojail-slurm-") })
	require.Len(t, debs, 2)
	dir := t.TempDir()
	for _, deb := range debs {
		run(t, nil, "dpkg-deb", "-x", strings.TrimPrefix(deb, repository+"/"), dir)
	}
	return dir
}

// listFiles returns the regular files below a directory, by their paths from there.
func listFiles(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			names = append(names, path)
		}
		return err
	}))
	slices.Sort(names)
	return names
}

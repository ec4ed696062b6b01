// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPluginCompilesOnEachRelease compiles the plugin against the headers of each release of Slurm whose root is here: its API changes between
// releases.
func TestPluginCompilesOnEachRelease(t *testing.T) {
	for _, release := range []string{"22.05", "24.11", "26.05"} {
		t.Run(release, func(t *testing.T) {
			headers, err := filepath.Abs("../../build/cache/slurm-" + release + "/usr/include/slurm")
			require.NoError(t, err)
			if _, err := os.Stat(headers + "/spank.h"); err != nil {
				t.Skipf("needs the network: the root of Slurm %s, which tests/releases/make %[1]s makes", release)
			}
			sources, err := listSources()
			require.NoError(t, err)
			// Of the root only Slurm: the C library is this machine's.
			dir := t.TempDir()
			require.NoError(t, os.Symlink(headers, dir+"/slurm"))
			flags := []string{"-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", `-DGOJAIL_RELEASE="0"`,
				"-I" + dir, "-I../../include", "-I../../spank"}
			out, err := exec.Command("gcc", slices.Concat(flags, sources)...).CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPluginIsTheSameWithEachHeader compiles plugin and job_submit against the headers of each release of Slurm that is here: the code is the
// same, byte for byte, and release.c has verified its row of that release.
func TestPluginIsTheSameWithEachHeader(t *testing.T) {
	plugin, err := listSources()
	require.NoError(t, err)
	submit, err := filepath.Glob("../../spank/*/job_submit_gojail.c")
	require.NoError(t, err)
	submit = append(submit, "../../spank/release/release.c")
	objects := map[string][]string{}
	for release, headers := range map[string]string{"22.05": "/usr/include/slurm", "24.11": "../../build/cache/slurm-24.11/usr/include/slurm",
		"26.05": "../../build/cache/slurm-26.05/usr/include/slurm"} {
		if _, err := os.Stat(headers + "/spank.h"); err != nil {
			defer t.Skipf("needs the network: the root of Slurm %s, which tests/releases/make %[1]s makes", release)
			continue
		}
		// Of the root only Slurm: the C library is this machine's.
		dir := t.TempDir()
		headers, err := filepath.Abs(headers)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(headers, dir+"/slurm"))
		for name, sources := range map[string][]string{"plugin": plugin, "job_submit": submit} {
			file := filepath.Join(dir, name)
			flags := []string{"-std=gnu11", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,--build-id=none", "-Wall", "-Wextra", "-Werror",
				"-D_GNU_SOURCE", `-DGOJAIL_RELEASE="0"`, "-I" + dir, "-I../../include", "-I../../spank", "-o", file}
			out, err := exec.Command("gcc", slices.Concat(flags, sources)...).CombinedOutput()
			require.NoError(t, err, "%s: %s", release, out)
			object, err := os.ReadFile(file)
			require.NoError(t, err)
			objects[name] = append(objects[name], string(object))
		}
	}
	for name, same := range objects {
		assert.Len(t, slices.Compact(same), 1, "%s differs between the headers of %d releases", name, len(objects[name]))
	}
}

// TestPluginFindsItsRelease: one plugin has the version of the Slurm that loads it, and what a failed hook returns there; Slurm refuses
// version 0, and the user is told why.
func TestPluginFindsItsRelease(t *testing.T) {
	requireRoot(t)
	h := buildHost(t)
	const unknown = "error: gojail 0 does not know this release of Slurm, which is "
	for api, want := range map[string]struct{ version, failed string }{
		"38": {"160500", "-1"}, "39": {"170200", "-1"}, "40": {"170b00", "-1"}, "41": {"180500", "-1"}, "42": {"180b00", "-1"},
		"43": {"190500", "3012"}, "44": {"190b00", "3012"}, "45": {"1a0500", "3012"},
	} {
		out := h.runCalls(t, "version,init,options,init_post_opt,task_init_privileged", "HOST_API="+api, "HOST_JAIL=a", "HOST_CONTEXT=remote",
			"HOST_JOB=7", "HOST_STEP=0")
		assert.Contains(t, out, "version "+want.version+"\n", api)
		assert.Contains(t, out, "task_init_privileged "+want.failed+"\n", api)
		assert.NotContains(t, out, unknown, api)
	}
	for api, want := range map[string]string{"37": "older than those that it is built for: install Slurm 22.05 or newer",
		"46": "newer than those that it is built for: install a newer gojail"} {
		assert.Equal(t, unknown+want+"\nversion 000000\n", h.runCalls(t, "version", "HOST_API="+api))
	}
}

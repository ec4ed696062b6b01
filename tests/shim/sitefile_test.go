// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/contract"
)

// TestSiteLinesAreReadInFull: a step never starts with a part of the mounts or of the devices that were planned for it.
func TestSiteLinesAreReadInFull(t *testing.T) {
	requireRoot(t)
	h := buildHost(t)
	h.makeJail(t)
	t.Cleanup(func() { h.runCalls(t, "init,job_epilog", "HOST_CONTEXT=script") })
	require.Contains(t, h.runCalls(t, stepCalls, "HOST_STEP=0"), "marker jail")
	path := filepath.Join(h.dir, "state/site")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	const run = "mount over tmpfs nosuid,nodev mode=755,size=64m,nr_inodes=16k /run\n"
	require.Contains(t, string(text), run)
	isolate := regexp.MustCompile(`(?m)^isolate .*\n`).FindString(string(text)) // behind the lines "gpu"
	require.NotEmpty(t, isolate)
	put := func(lines string) {
		t.Helper()
		replaced := run
		if strings.HasPrefix(lines, "gpu ") {
			replaced, lines = isolate, lines+isolate
		}
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), replaced, lines, 1)), 0o600))
	}
	for name, lines := range map[string]string{
		"an unknown way":              "mount sideways tmpfs nosuid,nodev - /run\n",
		"two ways":                    "mount over,in tmpfs nosuid,nodev - /run\n",
		"a condition only":            "mount net tmpfs nosuid,nodev - /run\n",
		"an unknown flag":             "mount over tmpfs nosuid,nodiratime - /run\n",
		"no options":                  "mount over tmpfs nosuid,nodev /run\n",
		"no path":                     "mount over tmpfs nosuid,nodev - \n",
		"a relative path":             "mount over tmpfs nosuid,nodev - run\n",
		"nothing":                     "mount \n",
		"a long type":                 "mount over " + strings.Repeat("t", 16) + " nosuid,nodev - /run\n",
		"long options":                "mount over tmpfs nosuid,nodev " + strings.Repeat("o", 96) + " /run\n",
		"a long path":                 "mount over tmpfs nosuid,nodev - /" + strings.Repeat("p", 31) + "\n",
		"a bind over a file system":   "mount over bind nosuid,nodev - /run\n",
		"a file system for munge":     run + "mount munge tmpfs ro - /munge\n",
		"two of munge":                run + "mount munge bind ro - /munge\nmount munge bind ro - /other\n",
		"a network for what is bound": run + "mount munge,net bind ro - /munge\n",
		"a network for a job's own":   run + "mount job,net tmpfs nosuid - /x\n",
		"a directory made over":       "mount over,mkdir tmpfs nosuid,nodev - /run\n",
		"a script elsewhere":          run + "mount script tmpfs nosuid,nodev - /elsewhere\n",
		"too many":                    run + strings.Repeat("mount in tmpfs nosuid - /dev/x\n", 17),
		"too many nodes of GPUs":      strings.Repeat("gpu 0 /dev/null\n", contract.GPUNodesMax+1),
		"a GPU without a number":      "gpu /dev/null\n",
		"a GPU without a node":        "gpu 0\n",
		"lines in another order":      "gpu 0 /dev/null\nenv A=B\n",
		"a long path of a GPU":        "gpu 0 /dev/" + strings.Repeat("n", contract.GPUPathMax-5) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			put(lines)
			out := h.runCalls(t, stepCalls, "HOST_STEP=0")
			assert.Contains(t, out, "the site file is damaged; ask your administrator")
			assert.NotContains(t, out, "marker")
		})
	}
	require.NoError(t, os.WriteFile(path, text, 0o600))
	assert.Contains(t, h.runCalls(t, stepCalls, "HOST_STEP=0"), "marker jail")
	// The last GPU that there is room for.
	last := "/dev/" + strings.Repeat("n", contract.GPUPathMax-6)
	lines := strings.Repeat("gpu 0 /dev/null\n", contract.GPUNodesMax-1) + "gpu 55 " + last + "\n"
	put(lines)
	assert.Contains(t, h.runCalls(t, stepCalls, "HOST_STEP=0", "SLURM_STEP_GPUS=0"), "marker jail")
	assert.Contains(t, h.runCalls(t, stepCalls, "HOST_STEP=0", "SLURM_STEP_GPUS=55"), "error: gojail: device "+last+" of the job does not exist")
}

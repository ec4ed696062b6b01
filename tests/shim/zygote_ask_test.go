// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestZygoteAsk: a zygote that is stuck, or replies garbage, is another process's to replace; the storage is silent
// where the holder gives no answer, and not where it has ended, after which a launch may try again.
func TestZygoteAsk(t *testing.T) {
	program := filepath.Join(t.TempDir(), "zygote_ask")
	args := []string{"-D_GNU_SOURCE", `-DGOJAIL_RELEASE="0"`, "-g", "-Wall", "-Wextra", "-Werror", "-I../../spank", "-I../../include", "-o", program, "testdata/zygote_ask.c"}
	for _, part := range []string{"zygote_client", "launch", "record", "fd", "fault", "printable"} {
		args = append(args, "../../spank/common/"+part+".c")
	}
	out, err := exec.Command("gcc", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for holder, want := range map[string]string{
		"is stuck":        "-3 0 \n",
		"replies garbage": "-2 0 \n",
		"ends":            `-1 0 the process that builds the sandbox of jail "debian" ended before it was done: Connection reset by peer; `,
		"hangs":           `-1 1 the sandbox was not built in time: Connection timed out; the storage of jail "debian" may hang: `,
	} {
		out, err := exec.Command(program, holder).CombinedOutput()
		require.NoError(t, err, "%s: %s", holder, out)
		assert.Contains(t, string(out), want, holder)
	}
}

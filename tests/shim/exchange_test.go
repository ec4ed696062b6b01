// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestExchangeAtEachCall exchanges /dev, /proc, /sys and /run in the jail's root at each system call by which a
// template is read and a sandbox made: the sandbox is the same as without, or is refused.
func TestExchangeAtEachCall(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: mounts")
	}
	program := filepath.Join(t.TempDir(), "exchange")
	args := []string{"-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror", "-I../../spank", "-I../../include",
		"-o", program, "testdata/exchange.c"}
	for _, name := range []string{"assemble", "job_stage", "remount", "writable", "accounts", "mountinfo"} {
		args = append(args, "../../spank/launcher/"+name+".c")
	}
	for _, name := range []string{"path", "fd", "fault", "printable"} {
		args = append(args, "../../spank/common/"+name+".c")
	}
	out, err := exec.Command("gcc", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(program, t.TempDir()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.NotContains(t, string(out), "exchanged at call")
	assert.Contains(t, string(out), "/proc/sys/fs")
	last := strings.TrimSpace(string(out))
	assert.NotContains(t, last[strings.LastIndex(last, "\n"):], " 0", "some are the same, some are refused")
}

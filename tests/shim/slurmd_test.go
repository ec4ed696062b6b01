// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/procfs"
)

// checkTemplateIsOfSlurmdsMounts runs steps in mounts of their own before there is a template. That is made where slurmd is, in whose mounts
// the jail's root is another directory, and nowhere else once slurmd has ended.
func checkTemplateIsOfSlurmdsMounts(t *testing.T, h host) {
	t.Helper()
	root, other := filepath.Join(h.dir, "root"), filepath.Join(h.dir, "slurmds-root")
	require.NoError(t, exec.Command("cp", "-a", root, other).Run())
	require.NoError(t, os.WriteFile(filepath.Join(other, "marker"), []byte("of slurmd\n"), 0o644))
	slurmd := exec.Command("sh", "-c", `mount --bind "$1" "$2" && echo ready && exec sleep 600`, "sh", other, root)
	slurmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := slurmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, slurmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	start, err := procfs.StartTime(slurmd.Process.Pid)
	require.NoError(t, err)
	record := filepath.Join(h.dir, "state", contract.SlurmdRecord)
	require.NoError(t, os.MkdirAll(filepath.Dir(record), 0o700))
	require.NoError(t, os.WriteFile(record, fmt.Appendf(nil, "%d %d %d %016x 0\n", contract.Version, slurmd.Process.Pid, start, 1), 0o600))

	assert.Contains(t, h.runCalls(t, stepCalls, "HOST_STEP=0"), "marker of slurmd")
	h.runCalls(t, "init,job_epilog", "HOST_CONTEXT=script")
	endRecorded(t, filepath.Join(h.dir, "state/jails/debian/zygote"))
	require.NoError(t, slurmd.Process.Kill())
	_ = slurmd.Wait()
	refused := h.runCalls(t, stepCalls, "HOST_STEP=0")
	assert.Contains(t, refused, "error: gojail: slurmd has ended ("+record+"), and the mounts of this job are its own: no jail is made of them")
	assert.NotContains(t, refused, "marker")
	require.NoError(t, os.Remove(record))
	h.runCalls(t, "init,job_epilog", "HOST_CONTEXT=script")
}

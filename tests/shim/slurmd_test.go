// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/procfs"
)

// slurmdRows are processes that the record of slurmd may or may not mean. The record has the pid of the process, or that of this test, which
// started at another time: what a slurmd leaves that went into the background later, or whose number is another process's by now.
var slurmdRows = []struct {
	name    string
	program string   // its name
	by      []string // what starts it
	here    bool     // the record has its pid
	key     uint64   // its mount namespace in the record; 0: its own
	ended   bool
	found   bool
}{
	{name: "the recorded process, whatever the name", program: "sleep", here: true, key: 1, found: true},
	{name: "it went into the background", program: "slurmd", found: true},
	{name: "another name of the program", program: "slurmd-24.11", found: true},
	{name: "a step's process", program: "slurmstepd"},
	{name: "another namespace", program: "slurmd", key: 1},
	{name: "a user's process", program: "slurmd", by: []string{"setpriv", "--reuid=65534", "--clear-groups"}},
	{name: "it has ended", program: "slurmd", here: true, ended: true},
}

// checkTemplateIsOfSlurmdsMounts runs steps in mounts of their own before there is a template. That is made where slurmd is, in whose mounts
// the jail's root is another directory, and nowhere else if no slurmd is found.
func checkTemplateIsOfSlurmdsMounts(t *testing.T, h host) {
	t.Helper()
	root, other := filepath.Join(h.dir, "root"), filepath.Join(h.dir, "slurmds-root")
	require.NoError(t, exec.Command("cp", "-a", root, other).Run())
	require.NoError(t, os.WriteFile(filepath.Join(other, "marker"), []byte("of slurmd\n"), 0o644))
	record := filepath.Join(h.dir, "state", contract.SlurmdRecord)
	require.NoError(t, os.MkdirAll(filepath.Dir(record), 0o700))
	for _, row := range slurmdRows {
		slurmd := exec.Command("sh", append([]string{"-c", `mount --bind "$1" "$2" && echo ready && shift 2 && exec "$@"`, "sh", other, root},
			append(row.by, copySleep(t, h, row.program), "600")...)...)
		slurmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
		end := startSlurmd(t, slurmd, row.program)
		pid, key := slurmd.Process.Pid, row.key
		if key == 0 {
			var mounts syscall.Stat_t
			require.NoError(t, syscall.Stat(fmt.Sprintf("/proc/%d/ns/mnt", pid), &mounts))
			key = mounts.Ino
		}
		start, err := procfs.StartTime(pid)
		require.NoError(t, err)
		if !row.here {
			pid = os.Getpid()
		}
		require.NoError(t, os.WriteFile(record, fmt.Appendf(nil, "%d %d %d %016x 0\n", contract.Version, pid, start, key), 0o600))
		if row.ended {
			end()
		}
		output := h.runCalls(t, stepCalls, "HOST_STEP=0")
		h.runCalls(t, "init,job_epilog", "HOST_CONTEXT=script")
		if row.found {
			assert.Contains(t, output, "marker of slurmd", row.name)
			endRecorded(t, filepath.Join(h.dir, "state/jails/debian/zygote"))
		} else {
			assert.Contains(t, output, "error: gojail: slurmd has ended ("+record+"), and the mounts of this job are its own: no jail is made of them", row.name)
			assert.NotContains(t, output, "marker", row.name)
		}
		end()
	}
	require.NoError(t, os.Remove(record))
}

// copySleep makes a program sleep of that name.
func copySleep(t *testing.T, h host, name string) string {
	t.Helper()
	path, err := exec.LookPath("sleep")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(h.dir, 0o755))
	require.NoError(t, exec.Command("cp", path, filepath.Join(h.dir, name)).Run())
	return filepath.Join(h.dir, name)
}

// startSlurmd starts a stand-in of slurmd, waits until it has that name, and returns what ends it.
func startSlurmd(t *testing.T, slurmd *exec.Cmd, name string) func() {
	t.Helper()
	out, err := slurmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, slurmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", slurmd.Process.Pid))
		return strings.TrimSpace(string(text)) == name
	}, time.Minute, 10*time.Millisecond)
	return func() {
		_ = slurmd.Process.Kill()
		_ = slurmd.Wait()
	}
}

// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/tests/harness"
)

// TestEndThatFailedIsTriedAgain: by the ends of later jobs, without an administrator, and by the sweep.
func TestEndThatFailedIsTriedAgain(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	exists := func(path string) bool {
		_, err := os.Lstat(c.Path(path))
		return err == nil
	}
	another := func() {
		t.Helper()
		requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
		require.True(t, c.WaitIdle(), c.Drained())
	}
	for _, by := range []string{"another job", "sweep"} {
		step, id := allocate(t, c)
		requireOutput(t, "debian", step("touch /tmp/file; cat "+marker))
		scratch, note, state := "/var/lib/gojail/n1/jobs/"+id, "/run/gojail/n1/ended/"+id, "/run/gojail/n1/jobs/"+id
		require.Zero(t, c.Root("mount", "-t", "tmpfs", "none", scratch).Code)
		mounted := true
		t.Cleanup(func() {
			if mounted {
				c.Root("umount", scratch)
			}
		})
		c.Run(harness.Alice, "scancel", id)
		require.True(t, harness.Poll(harness.Timeout, func() bool { return exists(note) }), "it is not noted")
		require.True(t, c.WaitIdle(), c.Drained())
		another()
		assert.True(t, exists(note), "the reason has not passed")
		assert.True(t, exists(state), "what the job has left is known")
		require.Zero(t, c.Root("umount", scratch).Code)
		mounted = false
		if by == "sweep" {
			r := c.Gojail("n1", "sweep")
			assert.Contains(t, r.Stdout, "removed job "+id, r)
		} else {
			assert.True(t, harness.Poll(harness.Timeout, func() bool { another(); return !exists(scratch) }), "%s is left", scratch)
		}
		requireMissing(t, c, scratch)
		requireMissing(t, c, state)
		requireMissing(t, c, "/run/gojail/n1/ended")
	}
	requireNothingLeft(t, c, before)
}

// TestTracerOutsideKeepsNothing: a tracer outside of a job keeps the traced process from being
// reaped, and the job's holder, process 1 there, from ending. All else of the job is gone.
func TestTracerOutsideKeepsNothing(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	step, id := allocate(t, c)
	requireOutput(t, "debian", step("touch /tmp/file; (setsid sleep 54321 >/dev/null 2>&1 &); cat "+marker))
	release := traceProcess(t, "sleep\x0054321\x00")
	c.Run(harness.Alice, "scancel", id)
	require.True(t, c.WaitIdle(), c.Drained())
	for _, path := range []string{"/var/lib/gojail/n1/jobs/", "/run/gojail/n1/jobs/", "/run/gojail/n1/ended/"} {
		requireMissing(t, c, path+id)
	}
	assert.NotEmpty(t, c.Find("[sleep]"), "it is a zombie while it is traced")
	release()
	requireNothingLeft(t, c, before)
}

// traceProcess makes this process the tracer of the one with that command line, in any namespace, until
// release, after which it is reaped.
func traceProcess(t *testing.T, command string) (release func()) {
	t.Helper()
	traced := 0
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range dirs {
			if text, _ := os.ReadFile(dir + "/cmdline"); string(text) == command {
				traced, _ = strconv.Atoi(filepath.Base(dir))
			}
		}
		return traced != 0
	}))
	began, end, ended := make(chan unix.Errno), make(chan bool), make(chan bool)
	go func() { // a tracer is a thread, which ends with this
		runtime.LockOSThread()
		_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(traced), 0, 0, 0, 0)
		began <- errno
		<-end
		unix.Kill(traced, unix.SIGKILL) // it has its number until it is reaped
		unix.Wait4(traced, nil, unix.WALL, nil)
		close(ended)
	}()
	require.Zero(t, <-began)
	once := false
	release = func() {
		if !once {
			once = true
			close(end)
			<-ended
		}
	}
	t.Cleanup(release)
	return release
}

// TestLauncherEndsWithItsStep: a sandbox whose step has ended is not built.
func TestLauncherEndsWithItsStep(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, regexp.MustCompile(`(?m)^deadline .*`).ReplaceAllString(harness.DefaultConfig, `deadline = "50s"`))
	writeOnNode(t, c, "/data/alice/file", "of the node\n")
	before := assembleTemplates(t, c)
	step, id := allocate(t, c)
	requireOutput(t, "debian", step("cat "+marker))
	zygote := strconv.Itoa(readRecordPid(t, c, "jails/debian/zygote"))
	require.Zero(t, c.Root("kill", "-STOP", zygote).Code)
	defer c.Root("kill", "-CONT", zygote)
	done := make(chan harness.Result)
	go func() {
		done <- c.Run(harness.Alice, "srun", "--jobid="+id, "--jail=debian", "--jail-mount=/data/alice:/mnt", "true")
	}()
	const launcher = "gojail-launcher sandbox"
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find(launcher)) == 1 }))
	stepd := c.Find(launcher)[0].Status["PPid"]
	require.Zero(t, c.Root("kill", "-KILL", stepd).Code)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return c.Root("kill", "-0", stepd).Code != 0 }))
	require.Zero(t, c.Root("kill", "-CONT", zygote).Code)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find(launcher)) == 0 }))
	// What its storage is known by is there before it, and goes with the job.
	sandboxes, err := filepath.Glob(c.Path("/run/gojail/n1/jobs/" + id + "/debian+" + strings.Repeat("?", 16)))
	require.NoError(t, err)
	assert.Empty(t, sandboxes)
	c.Run(harness.Alice, "scancel", id)
	<-done
	requireNothingLeft(t, c, before)
}

// TestEndOfAJobReadsRecordsOnly: a file beside the records has the user's words in it, and no process is killed for those.
func TestEndOfAJobReadsRecordsOnly(t *testing.T) {
	c := sharedCluster(t)
	step, id := allocate(t, c)
	requireOutput(t, "debian", step("cat "+marker))
	pid := runAsRoot(t, c, "setsid sleep 4567 </dev/null >/dev/null 2>&1 & echo $!")
	defer c.Root("kill", pid)
	start := strings.Fields(readFile(c, "/proc/"+pid+"/stat"))[21]
	for _, name := range []string{"debian.mounts", "debian.json", "debian.storage", "lock"} {
		// Replaced, as some are links to the template's.
		runAsRoot(t, c, "cd /run/gojail/n1/jobs/"+id+"; rm -f "+name+"; echo "+strconv.Itoa(contract.Version)+" "+pid+" "+start+" 0123456789abcdef 5001 >"+name)
	}
	c.Run(harness.Alice, "scancel", id)
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		_, err := os.Stat(c.Path("/run/gojail/n1/jobs/" + id))
		return os.IsNotExist(err)
	}))
	_, err := os.Stat(c.Path("/proc/" + pid))
	assert.NoError(t, err, "it was taken for a holder")
}

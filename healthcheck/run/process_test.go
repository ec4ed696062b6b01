// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/nstest"
)

// A process in a frozen cgroup of version 1 does not die of SIGKILL, like one that
// is stuck in the kernel.
func TestAChildThatCannotBeKilled(t *testing.T) {
	nstest.NeedRoot(t)
	const freezer = "/sys/fs/cgroup/freezer"
	if _, err := os.Stat(filepath.Join(freezer, "cgroup.procs")); err != nil {
		t.Skip("no freezer of cgroup v1 on this machine")
	}
	group, err := os.MkdirTemp(freezer, "gojail-test-")
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.Eventually(t, func() bool { return os.Remove(group) == nil }, time.Minute, 10*time.Millisecond)
	})
	r := runner(t, in("a", "frozen"), in("a", "fine"))
	require.NoError(t, os.WriteFile(filepath.Join(r.Locks, "group"), []byte(group), 0o600))
	r.Checks[0].Timeout = 10 * time.Second // by then it has frozen itself, on a busy machine too
	thaw := func() { _ = os.WriteFile(filepath.Join(group, "freezer.state"), []byte("THAWED"), 0) }
	t.Cleanup(thaw)
	want := []string{"frozen: fail: does not answer", "fine: unknown: an earlier check of the same process still hangs"}
	assert.Equal(t, want, said(r.Run(context.Background())))
	assert.Equal(t, want, said(r.Run(context.Background())), "of another run")
	thaw()
	r.Checks = r.Checks[1:]
	assert.Eventually(t, func() bool { return r.Run(context.Background())[0].Verdict == check.OK }, time.Minute, 10*time.Millisecond)
}

func awaitPID(dir string) string {
	for {
		if pid, err := os.ReadFile(filepath.Join(dir, "pid")); err == nil {
			return string(pid)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestChildrenEndWithTheirParent(t *testing.T) {
	dir := t.TempDir()
	parent := exec.Command("/proc/self/exe", "parent", dir)
	require.NoError(t, parent.Start())
	pid, err := strconv.Atoi(awaitPID(dir))
	require.NoError(t, err)
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	assert.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, time.Minute, time.Millisecond)
}

func TestProgramsOfAChildHaveABareEnvironmentAndEndWithIt(t *testing.T) {
	t.Setenv("SECRET", "x")
	r := runner(t, in("a", "asks"), in("a", "starts"))
	assert.Equal(t, []string{"asks: ok: hello:/:?<nil>", "starts: fail: does not answer"}, said(r.Run(context.Background())))
	// The shell's sleep held the lock as well.
	assert.Eventually(t, func() bool {
		lock, err := takeLock(filepath.Join(r.Locks, "child.0.lock"))
		if err == nil {
			lock.Close()
		}
		return err == nil
	}, time.Minute, time.Millisecond)
}

// A program with endless output uses its time, but bounded memory.
func TestTheOutputOfAProgramIsBounded(t *testing.T) {
	lock, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer lock.Close()
	out, err := runProgram(context.Background(), lock, buildEnvironment(nil), "/bin/sh", "-c", "head -c 10000000 /dev/zero; head -c 10000000 /dev/zero >&2; exit 3")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 3, exit.ExitCode())
	assert.Len(t, out, outputMax)
	assert.Len(t, exit.Stderr, errorsMax)
	out, err = runProgram(context.Background(), lock, buildEnvironment(nil), "/bin/echo", "hello")
	require.NoError(t, err)
	assert.Equal(t, "hello\n", string(out))
}

func TestTextsAreFitForAReason(t *testing.T) {
	text := SanitizeText("a\n\"b\"\xff"+strings.Repeat("x", 200), textMax)
	assert.Len(t, text, textMax)
	assert.True(t, strings.HasPrefix(text, "a?'b'?x"), text)
}

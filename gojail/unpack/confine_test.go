// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
)

// confine returns a confined command.
func confine(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	nstest.NeedRoot(t)
	nstest.NoLeaks(t)
	t.Setenv(childVariable, "1")
	cmd, err := Confine(context.Background(), []string{"/proc/self/exe"}, program, args...)
	require.NoError(t, err)
	return cmd
}

// readStatus returns fields of /proc/PID/status.
func readStatus(t *testing.T, pid int, names ...string) (values []string) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for _, name := range names {
		_, rest, _ := strings.Cut(string(text), "\n"+name+":")
		line, _, _ := strings.Cut(rest, "\n")
		values = append(values, name+" "+strings.TrimSpace(line))
	}
	return values
}

// TestConfinedProgram looks at a program while it waits for its input.
func TestConfinedProgram(t *testing.T) {
	cmd := confine(t, "cat")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	_, err = io.WriteString(in, "x")
	require.NoError(t, err)
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err, "it runs")

	pid := cmd.Process.Pid
	const none = "0000000000000000"
	assert.Equal(t, []string{"CapInh " + none, "CapPrm " + none, "CapEff " + none, "CapBnd " + none, "CapAmb " + none, "NoNewPrivs 1", "Seccomp 2", "Groups "},
		readStatus(t, pid, "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Groups"))
	for _, name := range []string{"mnt", "net", "ipc", "uts", "pid"} {
		own, err := os.Readlink("/proc/self/ns/" + name)
		require.NoError(t, err)
		its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, name))
		require.NoError(t, err)
		assert.NotEqual(t, own, its, name)
	}
	descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	assert.Len(t, descriptors, 3)
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	require.NoError(t, err)
	assert.Equal(t, "LC_ALL=C\x00", string(environment))
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^Max file size +0 +0 `, string(limits))
	assert.Regexp(t, `(?m)^Max data size +1073741824 +1073741824 `, string(limits))
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/root", pid))
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	for _, e := range entries {
		assert.Contains(t, systemDirs, e.Name())
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	require.NoError(t, err)
	require.NotEmpty(t, mounts)
	for line := range strings.Lines(string(mounts)) {
		assert.Contains(t, strings.Fields(line)[5], "ro,nosuid,nodev", line)
	}
}

// TestConfinedProgramCanDoNothing runs what an input could make a program do.
func TestConfinedProgramCanDoNothing(t *testing.T) {
	for script, want := range map[string]string{
		"echo x >/usr/gojail-test":             "cannot create /usr/gojail-test",
		"echo x >/gojail-test":                 "cannot create /gojail-test",
		"mount -o remount,rw /usr":             "mount: ",
		"mount -t tmpfs none /usr":             "mount: ",
		"unshare -Ur true":                     "Operation not permitted",
		"chroot /usr":                          "Operation not permitted",
		"cat /etc/passwd":                      "No such file or directory",
		"ls /proc/1":                           "No such file or directory",
		"nice -n -5 true":                      "Permission denied",
		"chown 5 /usr":                         "chown: ",
		"exec su -c id nobody":                 "su: ",
		"kill -9 " + strconv.Itoa(os.Getpid()): "No such process",
	} {
		cmd := confine(t, "sh", "-c", script)
		out, err := cmd.CombinedOutput()
		assert.Contains(t, string(out), want, "%s: %v", script, err)
	}
	out, err := confine(t, "sh", "-c", "tr a-z A-Z").CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestOnlyTheSystemsProgramsAreConfined(t *testing.T) {
	dir := t.TempDir()
	nstest.WriteFile(t, filepath.Join(dir, "xz"), "#!/bin/sh\n")
	require.NoError(t, os.Chmod(filepath.Join(dir, "xz"), 0o755))
	t.Setenv("PATH", dir)
	_, err := Confine(context.Background(), []string{"/proc/self/exe"}, "xz")
	require.EqualError(t, err, dir+"/xz cannot run confined: it is in none of the directories /usr and /bin; install the package of the system")
	_, err = Confine(context.Background(), []string{"/proc/self/exe"}, "missing")
	require.ErrorContains(t, err, "executable file not found")
}

// TestConfinedProgramEndsWithItsContext: it is the first process of its PID namespace, which ignores most signals.
func TestConfinedProgramEndsWithItsContext(t *testing.T) {
	nstest.NeedRoot(t)
	t.Setenv(childVariable, "1")
	ctx, cancel := context.WithCancel(context.Background())
	cmd, err := Confine(ctx, []string{"/proc/self/exe"}, "cat")
	require.NoError(t, err)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	require.NoError(t, cmd.Start())
	cancel()
	require.ErrorContains(t, cmd.Wait(), "killed")
}

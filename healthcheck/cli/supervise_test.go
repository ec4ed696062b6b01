// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/nvml/fakenvml"
	"github.com/gojail/gojail/internal/nstest"
)

// build returns the real program, since only that has a supervisor. TestMain removes it.
func build(t *testing.T) string {
	require.NoError(t, built())
	return filepath.Join(buildDir, "gojail-healthcheck")
}

var (
	buildDir string
	built    = sync.OnceValue(func() (err error) {
		if buildDir, err = os.MkdirTemp("", "gojail-test-"); err != nil {
			return err
		}
		out, err := exec.Command("go", "build", "-o", buildDir, "../cmd/gojail-healthcheck").CombinedOutput()
		if err != nil {
			return fmt.Errorf("go build: %w: %s", err, out)
		}
		return nil
	})
)

// programRun is one run of the program.
type programRun struct {
	cmd      *exec.Cmd
	out, err bytes.Buffer
}

func begin(t *testing.T, program, config string, args ...string) *programRun {
	r := &programRun{cmd: exec.Command(program, append([]string{"--config", config, "--node=n1"}, args...)...)}
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.err // pipes, as slurmd's: read until all writers have closed them
	r.cmd.WaitDelay = 2 * time.Minute
	require.NoError(t, r.cmd.Start())
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	return r
}

// wait returns the exit code; -1: the program or its output did not end in time.
func (r *programRun) wait() int {
	began := time.Now()
	if _ = r.cmd.Wait(); time.Since(began) > time.Minute {
		return -1
	}
	return r.cmd.ProcessState.ExitCode()
}

// child returns the process that performs the run. Go's runtime has other children for a
// moment, which have not executed a program (checkPidfd in package os).
func (r *programRun) child(t *testing.T) (pid int) {
	require.Eventually(t, func() bool {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.cmd.Process.Pid))
		for _, list := range lists {
			text, _ := os.ReadFile(list)
			for _, word := range strings.Fields(string(text)) {
				if name, _ := os.ReadFile("/proc/" + word + "/comm"); string(name) == "exe\n" {
					pid, _ = strconv.Atoi(word)
				}
			}
		}
		return pid > 0
	}, time.Minute, time.Millisecond)
	return pid
}

func gone(t *testing.T, pid int) {
	assert.Eventually(t, func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ")
	}, time.Minute, time.Millisecond)
}

// nvml returns a configuration with two checks of a library that hangs forever.
func nvml(t *testing.T, library, more string) (config, dir string) {
	return site(t, more+"[gpu]\ncount = 8\nlibrary = \""+library+"\"\n"+
		strings.Replace(only("fs-mounted", "gpu-driver", "gpu-lost"), "[check.gpu-driver]\n", "[check.gpu-driver]\ntimeout = \"1s\"\n", 1))
}

func TestASupervisedRun(t *testing.T) {
	program := build(t)
	config, dir := nvml(t, fakenvml.New(t).Path, "")
	r := begin(t, program, config, "--json")
	status := r.wait()
	assert.Contains(t, r.out.String(), `"gpu-lost"`)
	assert.Empty(t, r.err.String())
	assert.FileExists(t, dir+"/n1.prom")

	unsupervised, exit, err := call("--config", config, "--node", "n1", "--json")
	require.NoError(t, err)
	assert.Equal(t, exit, status, unsupervised)

	out, err := exec.Command(program, "--config", "/nowhere/health.toml").CombinedOutput()
	assert.EqualError(t, err, "exit status 3")
	assert.Contains(t, string(out), "gojail-healthcheck: /nowhere/health.toml: cannot read")
	out, err = exec.Command(program, "explain", "memory").CombinedOutput()
	require.NoError(t, err)
	assert.Contains(t, string(out), "memory looks at")
}

func TestARunWhoseNVMLHangs(t *testing.T) {
	program := build(t)
	good := fakenvml.New(t).Path
	config, dir := nvml(t, good, "")
	r := begin(t, program, config)
	r.wait()
	require.Contains(t, r.out.String(), "gpu-lost    ok", "the driver answers, and persistence mode is on")
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	hangs := strings.ReplaceAll(string(text), good, fakenvml.New(t, "- nvmlInit_v2 hang").Path)
	require.NoError(t, os.WriteFile(config, []byte(hangs), 0o600))

	r = begin(t, program, config)
	pid := r.child(t)
	assert.Equal(t, 2, r.wait())
	assert.Contains(t, r.out.String(), "gpu-driver  fail     does not answer")
	assert.Contains(t, r.out.String(), "gpu-lost    unknown  does not answer")
	gone(t, pid)
	assert.FileExists(t, dir+"/n1.prom")

	r = begin(t, program, config)
	assert.Equal(t, 2, r.wait())
	assert.Contains(t, r.out.String(), "gpu-driver  fail     does not answer")
	assert.NotContains(t, r.out.String(), "beside it", "each has a process, which can be killed")
}

// TestADriverThatIsSlow: without persistence mode the GPUs are initialized anew each time,
// which drains no node.
func TestADriverThatIsSlow(t *testing.T) {
	program := build(t)
	config, _ := nvml(t, fakenvml.New(t, "- nvmlInit_v2 hang").Path, "")
	for range 3 {
		r := begin(t, program, config)
		r.wait()
		assert.Contains(t, r.out.String(), "gpu-driver  warn     slow: persistence mode may be off; nvidia-persistenced turns it on")
		assert.NotContains(t, r.out.String(), " fail ")
	}
}

// A crash in the driver's library affects only the check that called it.
func TestARunWhoseNVMLCrashes(t *testing.T) {
	dir := t.TempDir()
	library := filepath.Join(dir, "libnvidia-ml.so.1")
	cc := exec.Command("cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-")
	cc.Stdin = strings.NewReader("int nvmlInit_v2(void) { __builtin_trap(); }\n")
	out, err := cc.CombinedOutput()
	require.NoError(t, err, string(out))
	config, dir := nvml(t, library, "")
	for range 2 {
		r := begin(t, build(t), config)
		assert.Equal(t, 3, r.wait())
		assert.Contains(t, r.out.String(), "fs-mounted  ok")
		assert.Contains(t, r.out.String(), "gpu-driver  unknown  the process of the check ended")
		assert.Equal(t, 1, strings.Count(r.out.String(), "gpu-driver  unknown"))
		assert.Empty(t, r.err.String(), "of the try that crashed")
		assert.FileExists(t, dir+"/n1.prom")
	}
}

// buildLibrary returns a library whose first call, in the process of a check, does something to the run, which is its parent, and then hangs.
// Later calls hang at once. So the run is hit while it waits, however busy the machine is. The file once beside the library has the run's pid.
func buildLibrary(t *testing.T, action string) string {
	dir := t.TempDir()
	library := filepath.Join(dir, "libnvidia-ml.so.1")
	cc := exec.Command("cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-x", "c", "-o", library, "-")
	cc.Stdin = strings.NewReader(fmt.Sprintf(`
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

int nvmlInit_v2(void);

int nvmlInit_v2(void)
{
	int once = open("%s/once", O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (once >= 0) {
		dprintf(once, "%%d", getppid());
		%s
	}
	for (;;)
		pause();
}
`, dir, action))
	out, err := cc.CombinedOutput()
	require.NoError(t, err, string(out))
	return library
}

func TestARunThatDoesNotEndIsNotWaitedFor(t *testing.T) {
	library := buildLibrary(t, "kill(getppid(), SIGSTOP);")
	config, _ := nvml(t, library, "total = \"2s\"\nslurm.timeout = \"1s\"\n")
	r := begin(t, build(t), config)
	assert.Equal(t, 3, r.wait())
	assert.Contains(t, r.err.String(), "gojail-healthcheck: the run did not finish in time; to find what hangs: ")
	text, err := os.ReadFile(filepath.Join(filepath.Dir(library), "once"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(string(text))
	require.NoError(t, err)
	gone(t, pid)
}

func TestARunThatCrashes(t *testing.T) {
	config, _ := nvml(t, buildLibrary(t, "kill(getppid(), SIGSEGV);"), "")
	r := begin(t, build(t), config)
	assert.Equal(t, 3, r.wait())
	assert.Contains(t, r.err.String(), "gojail-healthcheck: the run crashed; please report it\n")
}

// slurmd kills a program that exceeds its time.
func TestARunEndsWithItsSupervisor(t *testing.T) {
	config, dir := nvml(t, fakenvml.New(t, "- nvmlInit_v2 hang").Path, "total = \"5m\"\n")
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	text = bytes.Replace(text, []byte(`timeout = "1s"`), []byte(`timeout = "2m"`), 1) // longer than gone waits
	require.NoError(t, os.WriteFile(config, text, 0o600))
	r := begin(t, build(t), config)
	pid := r.child(t)
	require.Eventually(t, func() bool {
		label, _ := os.ReadFile(dir + "/run/nodes/n1/child.0.lock")
		return strings.HasPrefix(string(label), "gpu-driver")
	}, time.Minute, time.Millisecond, &r.err)
	require.NoError(t, r.cmd.Process.Kill())
	r.wait()
	gone(t, pid)
}

func TestWhatAProgramOfACheckStartsEndsWithTheRun(t *testing.T) {
	config, dir := site(t, "[gpu]\ncount = 8\nsmi = \"DIR/smi\"\n"+only("nvidia-smi"))
	script := "#!/bin/sh\nsleep 1000 </dev/null >/dev/null 2>&1 &\necho $! >" + dir + "/pid\n"
	require.NoError(t, os.WriteFile(dir+"/smi", []byte(script), 0o700))
	begin(t, build(t), config).wait()
	text, err := os.ReadFile(dir + "/pid")
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	gone(t, pid)
}

// A process in a frozen cgroup of version 1 does not die of SIGKILL, like one that
// is stuck in the kernel.
func TestARunThatCannotBeKilled(t *testing.T) {
	nstest.NeedRoot(t)
	const freezer = "/sys/fs/cgroup/freezer"
	if _, err := os.Stat(filepath.Join(freezer, "cgroup.procs")); err != nil {
		t.Skip("no freezer of cgroup v1 on this machine")
	}
	group, err := os.MkdirTemp(freezer, "gojail-test-")
	require.NoError(t, err)
	state := func(word string) error { return os.WriteFile(filepath.Join(group, "freezer.state"), []byte(word), 0) }
	t.Cleanup(func() {
		_ = state("THAWED")
		assert.Eventually(t, func() bool { return os.Remove(group) == nil }, time.Minute, 10*time.Millisecond)
	})
	program := build(t)
	freeze := fmt.Sprintf(`dprintf(open("%s/cgroup.procs", O_WRONLY), "%%d", getppid());
		dprintf(open("%[1]s/freezer.state", O_WRONLY), "FROZEN");`, group)
	config, dir := nvml(t, buildLibrary(t, freeze), "total = \"2s\"\nslurm.timeout = \"1s\"\n")
	r := begin(t, program, config)
	assert.Equal(t, 3, r.wait(), "also its output is closed")

	// The stuck run does not block the next run, which reports the check that hangs.
	r = begin(t, program, config)
	assert.Equal(t, 2, r.wait())
	assert.Contains(t, r.out.String(), "gpu-driver  fail     does not answer")
	assert.Contains(t, r.out.String(), "gpu-lost    unknown  an earlier check of the same process still hangs")
	label, err := os.ReadFile(dir + "/run/nodes/n1/child.1.lock")
	require.NoError(t, err, "of the process that took over the other checks")
	assert.NotContains(t, string(label), "gpu", "none has joined it")
}

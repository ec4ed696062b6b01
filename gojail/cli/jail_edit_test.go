// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/state/statetest"
	"github.com/gojail/gojail/internal/nstest"
)

// buildBusybox makes a version with busybox and many files the current one of jail debian. It returns the name of the version.
func (s *testSite) buildBusybox(t *testing.T) string {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("needs busybox-static: make deps")
	}
	if _, err := os.Stat("../../build/lib/gojail/gojail-launcher"); err != nil {
		t.Skip("needs build/lib/gojail: run make first")
	}
	tree := filepath.Join(s.dir, "tree")
	for _, dir := range []string{"bin", "etc", "many"} {
		require.NoError(t, os.MkdirAll(filepath.Join(tree, dir), 0o755))
	}
	text, err := os.ReadFile(busybox)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(tree, "bin/busybox"), text, 0o755))
	for _, name := range []string{"sh", "touch", "sleep", "setsid", "unshare", "true"} {
		require.NoError(t, os.Symlink("busybox", filepath.Join(tree, "bin", name)))
	}
	for i := range 500 {
		require.NoError(t, os.WriteFile(filepath.Join(tree, "many", strconv.Itoa(i)), []byte("x"), 0o644))
	}
	s.must(t, "jail", "build", "debian", "--from", "dir:"+tree)
	s.must(t, "jail", "switch", "debian")
	list, current := s.versions(t)
	require.Equal(t, []string{current}, list)
	return current
}

// exists returns a function that reports whether a pattern has a match.
func exists(pattern string) func() bool {
	return func() bool {
		found, err := filepath.Glob(pattern)
		return err == nil && len(found) > 0
	}
}

// findOfEdit returns the processes and mounts of any process that mention a text.
func findOfEdit(text string) (list []string) {
	for _, name := range []string{"cmdline", "mountinfo"} {
		files, _ := filepath.Glob("/proc/[0-9]*/" + name)
		for _, file := range files {
			// /proc/PID/mountinfo is read as long as it is: a mount deep below is at its end.
			if found, err := os.ReadFile(file); err == nil && strings.Contains(string(found), text) {
				list = append(list, file+": "+strings.ReplaceAll(string(found[:min(len(found), 300)]), "\x00", " "))
			}
		}
	}
	return list
}

// TestSweepAfterAKilledEdit kills an edit at several moments. The next command removes its copy in the store, the processes
// and mounts of its sandbox, and its directory in /run.
func TestSweepAfterAKilledEdit(t *testing.T) {
	s, store := newStoreSite(t)
	current := s.buildBusybox(t)
	work := filepath.Join(store, "debian/work")
	const stubborn = "trap '' HUP TERM; setsid sleep 1000 & unshare -m sleep 1000 & touch /started; sleep 1000; true"
	for _, test := range []struct {
		name    string
		when    string // a path appears; PID is the edit's
		command string
		next    []string
	}{
		{"while it copies", work + "/build-*/tree/many", stubborn, []string{"jail", "switch", "debian"}},
		{"when it has its directory", "/run/gojail-edit-PID-*", stubborn, []string{"jail", "gc", "debian", "--no-slurm"}},
		{"when it has its state directory", "/run/gojail-edit-PID-*/state/jobs", stubborn, []string{"jail", "edit", "debian", "--", "sh", "-c", "exit 3"}},
		{"while it makes the template", "/run/gojail-edit-PID-*/state/jails/edit", stubborn, []string{"jail", "build", "debian", "--no-targets", "--from", "dir:/missing"}},
		{"when it has a template", "/run/gojail-edit-PID-*/state/jails/edit/zygote", stubborn, []string{"jail", "rollback", "debian"}},
		{"when it has a sandbox", "/run/gojail-edit-PID-*/state/jobs/run-PID/edit*", stubborn, []string{"jail", "rm", "debian", current, "--no-slurm"}},
		{"while its command runs", work + "/build-*/tree/started", stubborn, []string{"jail", "switch", "debian"}},
		{"while its command runs, and before a sweep", work + "/build-*/tree/started", stubborn, []string{"sweep"}},
		{"when its command has ended", work + "/build-*/tree/ended", "touch /ended", []string{"jail", "switch", "debian", current}},
		{"while it lists the files", work + "/build-*/list", "true", []string{"jail", "switch", "debian", current}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := s.command("jail", "edit", "debian", "--", "sh", "-c", test.command)
			said, err := os.CreateTemp(t.TempDir(), "") // no pipe: Wait would wait for all that have it
			require.NoError(t, err)
			defer said.Close()
			cmd.Stdout, cmd.Stderr = said, said
			require.NoError(t, cmd.Start())
			pid := strconv.Itoa(cmd.Process.Pid)
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			reached := exists(strings.ReplaceAll(test.when, "PID", pid))
			for until := time.Now().Add(time.Minute); !reached() && len(ended) == 0 && time.Now().Before(until); {
				time.Sleep(100 * time.Microsecond)
			}
			cmd.Process.Kill()
			err = <-ended
			text, _ := os.ReadFile(said.Name())
			require.EqualError(t, err, "signal: killed", string(text))
			left := fmt.Sprintf("/run/gojail-edit-%s-*", pid)
			nstest.WaitUntilClosed(t, work+"/*/owner.json")
			nstest.WaitUntilClosed(t, left)

			out, _ := s.command(test.next...).CombinedOutput()
			assert.NotContains(t, string(out), "cannot remove")
			assert.False(t, exists(left)(), "%s is left after %v: %s", left, test.next, out)
			assert.Empty(t, findOfEdit("gojail-edit-"+pid+"-"), "processes and mounts of the sandbox")
			assert.Empty(t, findOfEdit(work), "mounts of the copy")
			if test.next[0] == "sweep" {
				s.must(t, "jail", "switch", "debian", current)
			}
			entries, err := os.ReadDir(work)
			require.NoError(t, err)
			assert.Empty(t, entries, "the copy")
			list, now := s.versions(t)
			assert.Equal(t, []string{current}, list)
			assert.Equal(t, current, now)
		})
	}
	assert.Contains(t, s.must(t, "jail", "verify", "debian"), " is as it was built\n")
}

// TestSweepLeavesRunningEdits: the directory of an edit that runs is locked.
func TestSweepLeavesRunningEdits(t *testing.T) {
	s, _ := newStoreSite(t)
	running, err := os.MkdirTemp("/run", fmt.Sprintf("gojail-edit-%d-", os.Getpid()))
	require.NoError(t, err)
	lock, err := os.Open(running)
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	s.must(t, "sweep")
	assert.DirExists(t, running)
	require.NoError(t, lock.Close())
	assert.Equal(t, "removed the sandbox of a killed gojail jail edit, "+running+"\n", s.must(t, "sweep"))
	assert.NoDirExists(t, running)
}

// TestSwitchPrintsJobs: the switch asks this node again, so that a job that began since its last lease is not missing.
func TestSwitchPrintsJobs(t *testing.T) {
	s, dir := newStoreSite(t)
	first := s.buildBusybox(t)
	s.must(t, "jail", "build", "debian", "--from", "dir:"+s.root)
	assert.NotContains(t, s.must(t, "jail", "switch", "debian"), "still has", "this machine has written no lease")
	assert.NoDirExists(t, filepath.Join(s.dir, "state-n1"))
	s.must(t, "jail", "rollback", "debian")
	s.must(t, "sweep")

	job := exec.Command("/bin/sleep", "1000")
	job.Path, job.Dir, job.SysProcAttr = "/bin/sleep", "/", &syscall.SysProcAttr{Chroot: filepath.Join(dir, "debian/versions", first)}
	require.NoError(t, job.Start())
	t.Cleanup(func() { job.Process.Kill(); job.Wait() })
	node, err := state.OpenState(filepath.Join(s.dir, "state-n1"))
	require.NoError(t, err)
	statetest.AddRecord(t, node, "jobs/17/stored", statetest.RecordOf(t, job.Process.Pid))
	assert.Regexp(t, "\nstill has "+first+`: n1 \(job 17\), as of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n$`, s.must(t, "jail", "switch", "debian"))
}

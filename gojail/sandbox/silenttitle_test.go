// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

// linkSleep returns the path of sleep(1) under another name, which the process has as its comm (proc_pid_comm(5)). Any user
// can execute it.
func linkSleep(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gojail-test-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(sleep, filepath.Join(dir, name)))
	return filepath.Join(dir, name)
}

func init() {
	nstest.Actions["silentTitle"] = func(pids string) (any, error) {
		if err := nstest.MakePrivate(); err != nil {
			return nil, err
		}
		silent, err := os.MkdirTemp("", "gojail-test-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(silent)
		if err := unix.Mkfifo(silent+"/title", 0o600); err != nil {
			return nil, err
		}
		var list []int
		if err := json.Unmarshal([]byte(pids), &list); err != nil {
			return nil, err
		}
		for _, pid := range list {
			if err := unix.Mount(silent+"/title", fmt.Sprintf("/proc/%d/cmdline", pid), "", unix.MS_BIND, ""); err != nil {
				return nil, fmt.Errorf("cannot mount on the title: %w", err)
			}
		}
		done := make(chan error, 1)
		go func() {
			_, err := listStepdTitles()
			done <- err
		}()
		select {
		case err := <-done:
			return nil, err
		case <-time.After(time.Minute):
			return nil, errors.New("it waits for the title of a process that is not slurmstepd")
		}
	}
}

// TestSilentTitle: reading the title of a task that maps a file on storage that does not answer waits for the storage. Here, it is a pipe
// without a writer.
func TestSilentTitle(t *testing.T) {
	nstest.NeedRoot(t)
	var pids []int
	for name, uid := range map[string]uint32{"slurmstepd": 65534, "other": 0} {
		task := exec.Command(linkSleep(t, name), "1000")
		task.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		require.NoError(t, task.Start())
		t.Cleanup(func() { task.Process.Kill(); task.Wait() })
		pids = append(pids, task.Process.Pid)
	}
	require.NoError(t, nstest.Run(t, "silentTitle", pids, nil))
}

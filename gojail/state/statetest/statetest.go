// SPDX-License-Identifier: Apache-2.0

// Package statetest has records for tests.
package statetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/procfs"
	"github.com/gojail/gojail/internal/version"
)

// Key is the key of a template.
const Key = "0123456789abcdef"

// Sleeper returns a process that can be a holder; it is reaped when the test ends.
func Sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

// RecordOf returns the record of a live process.
func RecordOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := ReadRecordOf(pid)
	require.NoError(t, err)
	return text
}

// ReadRecordOf is RecordOf where there is no test.
func ReadRecordOf(pid int) (string, error) {
	start, err := procfs.StartTime(pid)
	if err == nil && start == 0 {
		err = fmt.Errorf("process %d has no start", pid)
	}
	return fmt.Sprintf("%d %d %d %s 0 %s\n", contract.Version, pid, start, Key, version.Text()), err
}

// AddRecord writes jobs/ID/NAME or jails/JAIL/zygote.
func AddRecord(t *testing.T, s interface{ Path() string }, path, text string) {
	t.Helper()
	path = filepath.Join(s.Path(), path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

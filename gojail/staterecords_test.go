// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// someKey is the key of a template.
const someKey = "0123456789abcdef"

// sleeper is a process that can be a holder; it is reaped when the test ends.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

// recordOf is the record of a live process.
func recordOf(t *testing.T, pid int) string {
	t.Helper()
	start, err := processStart(pid)
	require.NoError(t, err)
	require.NotZero(t, start)
	return fmt.Sprintf("%d %d %d %s 0\n", ContractVersion, pid, start, someKey)
}

// addRecord writes jobs/ID/NAME or jails/JAIL/zygote.
func addRecord(t *testing.T, s interface{ Path() string }, path, text string) {
	t.Helper()
	path = filepath.Join(s.Path(), path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/mount/mounttest"
	"github.com/gojail/gojail/internal/nstest"
)

func init() {
	nstest.Actions["zygote"] = func(root string) (any, error) {
		if err := attachAndApply(mounttest.SmallView(root)); err != nil {
			return nil, err
		}
		fmt.Println("ready")
		io.Copy(io.Discard, os.Stdin)
		return nil, nil
	}
}

// startZygote keeps a process in an assembled jail until the test ends.
func startZygote(t *testing.T, root string) int {
	t.Helper()
	nstest.NeedRoot(t)
	cmd := nstest.Command("zygote", root)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { stdin.Close(); cmd.Wait() })
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	require.Equal(t, "ready\n", line)
	return cmd.Process.Pid
}

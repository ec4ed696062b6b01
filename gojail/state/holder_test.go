// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bufio"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
)

// A process may call itself slurmstepd: a user's counts all the same.
func TestInhabitants(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root")
	}
	holder := `exec 3<&0
sh -c 'printf slurmstepd >/proc/self/comm
	setpriv --reuid 65533 --regid 65533 --clear-groups sh -c "printf slurmstepd >/proc/self/comm; echo; read end"
	:' <&3 &
wait`
	cmd := exec.Command("unshare", "--mount", "sh", "-c", holder)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, map[uint32]int{65533: 1}, Record{PID: cmd.Process.Pid}.Inhabitants())
}

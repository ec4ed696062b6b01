// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/nstest"
)

// TestLostHolderIsInhabited: a process counts, whichever namespace of the holder it lives in.
func TestLostHolderIsInhabited(t *testing.T) {
	nstest.NeedRoot(t)
	for lives, want := range map[string]bool{
		"exec sleep 1000":                  false,
		"sleep 1000":                       true,
		"unshare -m sleep 1000":            true, // in its PID namespace alone
		"unshare -m -p -f sleep 1000":      true, // in one below that
		"exec unshare -m -p -f sleep 1000": true,
		"unshare -m -n -i -u -p -f true":   false,
	} {
		cmd := exec.Command("sh", "-c", lives+"; exec sleep 1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		p := holderOrZygote{state.Record{PID: cmd.Process.Pid}, true}
		assert.Eventually(t, func() bool { return p.isInhabited() == want }, time.Minute, 5*time.Millisecond, "%s", lives)
	}
}

// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/harness"
)

// abstract has task 0 answer on an abstract socket for ever; any other asks there, once it answers.
const abstract = `import os, socket, sys, time
s = socket.socket(socket.AF_UNIX)
if os.environ.get("SLURM_PROCID") == "0" and len(sys.argv) == 1:
    s.bind("\0gojail-scope")
    s.listen()
    open("/tmp/answers", "w")
    while True:
        s.accept()[0].send(b"hello")
while len(sys.argv) == 1 and not os.path.exists("/tmp/answers"):
    time.sleep(0.05)
try:
    s.connect("\0gojail-scope")
    print(s.recv(5).decode(), flush=True)
except OSError as e:
    print(e.strerror, flush=True)
open("/tmp/asked", "w")
`

// hasScopes reports whether this kernel can separate abstract sockets (Landlock scopes, Linux 6.12).
func hasScopes(t *testing.T) bool {
	t.Helper()
	attr := struct{ fs, net, scoped uint64 }{scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno == 0 {
		require.NoError(t, unix.Close(int(fd)))
	}
	return errno == 0
}

// TestAbstractSocketsOfAStep: tasks of a step reach each other, and with "step" nothing outside of it.
func TestAbstractSocketsOfAStep(t *testing.T) {
	c := sharedCluster(t)
	writeInJail(t, c, "/home/alice/abstract.py", abstract)
	ask := func() (same, other string) {
		step, id := allocate(t, c)
		pair := make(chan harness.Result)
		go func() {
			pair <- c.Run(harness.Alice, "srun", "-Q", "-n2", "-O", "--overlap", "--jobid="+id, "--jail=debian", "python3", "/home/alice/abstract.py")
		}()
		r := step("until [ -e /tmp/asked ]; do sleep 0.1; done; python3 /home/alice/abstract.py other")
		c.Run(harness.Alice, "scancel", id)
		return strings.TrimSpace((<-pair).Stdout), strings.TrimSpace(r.Stdout)
	}
	same, other := ask()
	assert.Equal(t, []string{"hello", "hello"}, []string{same, other}, "control")

	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\nabstract_sockets = \"step\"\n", 1))
	if !hasScopes(t) {
		requireRefused(t, "needs Landlock of Linux 6.12", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "sh", "-c", task))
		assert.Contains(t, c.Gojail("n1", "check").Stdout, "this node's kernel cannot restrict abstract sockets")
		return
	}
	assert.NotContains(t, c.Gojail("n1", "check").Stdout, "abstract sockets")
	same, other = ask()
	assert.Equal(t, []string{"hello", "Operation not permitted"}, []string{same, other})
}

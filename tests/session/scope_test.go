// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/harness"
)

// hasScopes reports whether this kernel can separate abstract sockets (Landlock scopes, Linux 6.12).
func hasScopes() bool {
	attr := struct{ fs, net, scoped uint64 }{scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno == 0 {
		unix.Close(int(fd))
	}
	return errno == 0
}

// TestAbstractSocketsOfASession requires that a session in a jail with abstract_sockets = "step" has abstract sockets of its own, and that no other session reaches them.
func TestAbstractSocketsOfASession(t *testing.T) {
	if !hasScopes() {
		t.Skip("needs Landlock of Linux 6.12")
	}
	s := sharedSite(t)
	require.NoError(t, s.WriteConfig(configuration+"\n[jail.scoped]\nroot = \"/srv/jails/debian\"\nabstract_sockets = \"step\"\n"))
	t.Cleanup(func() { require.NoError(t, s.WriteConfig(configuration)) })
	for jail, want := range map[string]string{"debian": "reached", "scoped": "Operation not permitted"} {
		job := s.startJob(t, harness.Alice, "--jail="+jail)
		reach := `socket(C, PF_UNIX, SOCK_STREAM, 0); my $r = connect(C, sockaddr_un("\0of-` + jail + `")) ? "reached" : "$!";`
		listens := s.Path("/var/lib/gojail/n1/jobs/" + job + "/tmp/listens")
		s.startInBackground(t, harness.Alice, formatSSHCommand(harness.Alice, job, shells, `perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un("\0of-`+jail+
			`")) or die $!; listen(S, 9); `+reach+` open F, ">", "/tmp/listens"; print F $r; close F; sleep 1000'`)...)
		require.True(t, harness.Poll(harness.Timeout, func() bool { text, _ := os.ReadFile(listens); return string(text) == "reached" }), "its own")
		requireOutput(t, want, s.runSSH(harness.Alice, job, shells, `perl -MSocket -e '`+reach+` print $r'`))
		s.endJob(t, job)
	}
}

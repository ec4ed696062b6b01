// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestLoginInASlice requires that a session on a login node stays in the cgroup (version 2) of its own that systemd-logind has put it
// into, with all that it leaves behind, and that nothing of its sandbox is there: the scope of a session ends with the session's
// processes, and the slice of the user with its last scope.
func TestLoginInASlice(t *testing.T) {
	s := sharedLoginNode(t, strings.Replace(loginTable, "2s", fmt.Sprintf("%ds", 4*harness.Slow), 1))
	setup := fmt.Sprintf("r=/sys/fs/cgroup; [ -e $r/cgroup.procs ] || r=$r/unified; slice=$r/gojail-%d-user-5001.slice; ", s.Pid)
	if r := s.Root("sh", "-ec", setup+"mkdir $slice && cat $slice/cgroup.events"); r.Code != 0 {
		t.Skip("needs cgroup v2: ", r)
	}
	t.Cleanup(func() {
		assert.True(t, harness.Poll(harness.Timeout, func() bool { return s.Root("sh", "-ec", setup+"find $slice -depth -type d -exec rmdir {} +").Code == 0 }))
	})
	begin := func(scope, command string) harness.Result {
		return s.Root("sh", "-ec", setup+"mkdir $slice/"+scope+"; echo 0 >$slice/"+scope+"/cgroup.procs; exec setpriv --reuid=5001 --regid=5001 --clear-groups "+program+" -c '"+command+"'")
	}
	populated := func(scope string) string {
		return strings.TrimSpace(s.Root("sh", "-ec", setup+"grep populated $slice/"+scope+"/cgroup.events").Stdout)
	}
	// The first session has the sandbox built.
	r := begin("session-1.scope", "cat /etc/gojail-jail; grep ^0:: /proc/self/cgroup")
	assert.Regexp(t, fmt.Sprintf(`^debian\n0::.*/gojail-%d-user-5001\.slice/session-1\.scope\n$`, s.Pid), r.Stdout, r)
	assert.Contains(t, s.listLogins(), "login-5001", "the sandbox stays for a while")
	assert.Equal(t, "populated 0", populated("session-1.scope"), s.Root("sh", "-ec", setup+"cat $slice/*/cgroup.procs"))

	r = begin("session-2.scope", "setsid sleep 7010 </dev/null >/dev/null 2>&1 & cat /etc/gojail-jail")
	requireOutput(t, "debian", r)
	assert.True(t, harness.Poll(harness.Timeout, func() bool { // setsid(1) may not have begun the program yet
		r = s.Root("sh", "-ec", setup+"for p in $(cat $slice/session-2.scope/cgroup.procs); do tr '\\0' ' ' </proc/$p/cmdline; done")
		return r.Stdout == "sleep 7010 "
	}), "%v", r)

	// As loginctl terminate-user does. The sandbox ends by linger.
	require.Zero(t, s.Root("sh", "-ec", setup+"kill $(cat $slice/*/cgroup.procs)").Code)
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return populated(".") == "populated 0" }))
}

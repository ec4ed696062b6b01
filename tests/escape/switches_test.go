// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gojail/gojail/tests/harness"
)

// TestEachSwitchAlone: every part of the isolation holds what it is there for
// without the others. The jail is "open" but for that one key.
func TestEachSwitchAlone(t *testing.T) {
	s := sharedSite(t)
	for _, alone := range []struct {
		key     string
		line    string // instead of the one that switches it off
		p       place
		attacks []string
	}{
		{"namespaces", `namespaces = ["pid"]`, openUser, []string{"proc-root", "see", "environ", "signal", "memory", "ptrace", "pidfd_getfd"}},
		{"namespaces", `namespaces = ["ipc"]`, openUser, []string{"sysv-shm", "sysv-sem", "sysv-msg", "posix-mq"}},
		{"namespaces", `namespaces = ["uts"]`, openRoot, []string{"hostname"}},
		{"capabilities", "", openRoot, []string{"setns", "handle", "unmask", "fresh-mounts", "reboot", "swapon", "mount-namespace", "net-namespace", "dmesg"}},
		{"abstract_sockets", `abstract_sockets = "step"`, openUser, []string{"abstract-socket"}},
		{"seccomp", "", openUser, []string{"keyctl", "add_key", "keyring", "userfaultfd", "io_uring"}},
		{"seccomp", `seccomp = "containers"`, openUser, []string{"keyctl", "add_key", "keyring", "userfaultfd", "io_uring", "personality-high",
			"socket-vsock", "socket-alg", "socket-families", "socket-netlink", "socket-inet", "socket-pairs", "module-loading", "i386-sockets"}},
	} {
		name := alone.key
		if _, value, found := strings.Cut(alone.line, " = "); found {
			name += " " + value
		}
		t.Run(name, func(t *testing.T) {
			s.configure(t, formatOff(alone.key), alone.line)
			s.startVictims(t, "open")
			verdicts := s.runAttacks(t, alone.p, alone.attacks...)
			for attack, v := range verdicts {
				assert.Equal(t, held, v.word, "%s (%s): %s", attack, alone.p.name, v)
			}
		})
	}
}

// formatOff returns the line of gojail.toml that switches a part of "open" off.
func formatOff(key string) string {
	for line := range strings.Lines(allOff) {
		if name, _, _ := strings.Cut(line, " = "); name == key {
			return strings.TrimSpace(line)
		}
	}
	return key
}

// TestHidepidAlone: without a PID namespace, too, processes of other users are not to be seen.
func TestHidepidAlone(t *testing.T) {
	s := sharedSite(t)
	bob := openUser
	bob.user = harness.Bob
	s.startVictim(t, "node", onNode)
	s.startVictim(t, "job-of-alice", jailPlace("", harness.Alice, "open"))
	control := s.runAttacks(t, bob, "see")["see"]
	assert.Equal(t, escaped, control.word, "control: %s", control)
	s.configure(t, formatOff("hidepid"), "")
	v := s.runAttacks(t, bob, "see")["see"]
	assert.Equal(t, held, v.word, "bob's: %s", v)
}

// TestSetuidSwitches: nosuid alone, and no_new_privs alone, hold a setuid program.
func TestSetuidSwitches(t *testing.T) {
	s := sharedSite(t)
	s.plantSetuid(t, "/srv/jails/open/opt/planted", false)
	for _, key := range []string{"no_new_privs", "options"} {
		t.Run(key, func(t *testing.T) {
			s.configure(t, formatOff(key), "")
			r := s.Run(harness.Alice, "srun", "-wn1", "--jail=open", "/opt/planted", "root")
			assert.Contains(t, r.Stdout, "root "+held, r)
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// lent are attacks on what root might lend to a program of the jail.
var lent = []string{"node-uid", "node-rights", "munge-socket", "packet-socket", "raw-socket", "others-home", "roots-file", "streams", "outside-signal",
	"keyctl", "ptrace", "signal", "memory", "environ", "pidfd_getfd", "abstract-socket", "abstract-pair", "terminal", "user-namespace"}

// hostileShell is the jail's /bin/bash: the administrator who looks around starts it.
const hostileShell = `#!/bin/sh
exec ` + attackPath + ` run $(cat /opt/lent) 2>&1
`

// lend is a command of root's that starts a program of the jail, with what the program may nevertheless do.
type lend struct {
	name    string
	command []string // of gojail, before "--"
	login   string   // login uid of the caller; "": none
	allowed []string // attacks that are a right of the person whom the program runs as
}

var (
	// Rights of a person's: munge, and without abstract_sockets = "step" the node's abstract sockets.
	asPerson = []string{"munge-socket", "abstract-socket", "abstract-pair"}
	// Rights that tasks of a job have over one another.
	inJob = []string{"ptrace", "signal", "memory", "environ", "pidfd_getfd", "terminal", "abstract-socket", "abstract-pair"}
)

// lends returns all ways in which root starts a program of the jail "owned"; JOB is a job of alice's.
func lends(job string) []lend {
	noMunge := []string{"abstract-socket", "abstract-pair"}
	return []lend{
		{name: "enter", command: []string{"enter", job}, allowed: slices.Concat(inJob, asPerson)},
		{name: "enter -u alice", command: []string{"enter", job, "-u", "alice"}, allowed: slices.Concat(inJob, asPerson)},
		{name: "enter -u root", command: []string{"enter", job, "-u", "root"}, allowed: []string{"signal", "terminal", "abstract-socket", "abstract-pair"}},
		{name: "run", command: []string{"run", "owned"}, allowed: noMunge},
		{name: "run -u root", command: []string{"run", "owned", "-u", "root"}, allowed: noMunge},
		{name: "run -u nobody", command: []string{"run", "owned", "-u", "nobody"}, allowed: noMunge},
		{name: "run by alice", login: "5001", command: []string{"run", "owned"}, allowed: asPerson},
		{name: "run -u root by alice", login: "5001", command: []string{"run", "owned", "-u", "root"}, allowed: noMunge},
	}
}

// requireHeld requires that an attack was held, or is a right of the person: over nobody else's job.
func (l lend) requireHeld(t *testing.T, attack string, v verdict) {
	t.Helper()
	if !slices.Contains(l.allowed, attack) {
		assert.Equal(t, held, v.word, "%s: %s", attack, v)
	} else if !strings.HasPrefix(attack, "abstract") {
		assert.NotContains(t, v.text, "of-bob", attack)
		assert.NotContains(t, v.text, "(node)", attack)
	}
}

// arguments returns the command line of the command on node n1.
func (l lend) arguments(more ...string) []string {
	args := slices.Concat([]string{"gojail", "--node=n1", "--state=/run/gojail/%n"}, l.command, more)
	if l.login != "" { // which is set once for a process that has none, and kept
		return append([]string{"sh", "-c", `echo ` + l.login + ` >/proc/self/loginuid && exec "$@"`, "sh"}, args...)
	}
	return args
}

// plantHostileShell makes the jail "owned" alice's, with her shell in it, files of others, and a job of each user.
func (s *site) plantHostileShell(t *testing.T) (job string) {
	t.Helper()
	s.giveRootToAlice(t)
	s.plantFile(t, "/usr/bin/bash", []byte(hostileShell))
	s.plantFile(t, "/opt/lent", []byte(strings.Join(lent, "\n")))
	s.plantFile(t, "/etc/of-root", []byte("secret"))
	require.NoError(t, os.Chmod(s.Path(owned+"/etc/of-root"), 0o600))
	s.startVictims(t, "owned")
	for line := range strings.Lines(s.Root("squeue", "-h", "-o", "%i %u").Stdout) {
		if id, user, _ := strings.Cut(strings.TrimSpace(line), " "); user == harness.Alice {
			job = id
		}
	}
	require.NotEmpty(t, job)
	return job
}

// TestHostileShell has an administrator who looks around in the jail of a user, whose shell uses all that it is lent.
func TestHostileShell(t *testing.T) {
	s := sharedSite(t)
	job := s.plantHostileShell(t)
	control := s.runAttacks(t, place{user: "root", command: []string{"srun", "-Q", "-wn1", "--jail=open"}}, "node-uid", "node-rights", "munge-socket", "packet-socket", "raw-socket", "others-home",
		"abstract-pair")
	for attack, v := range control {
		assert.Equal(t, escaped, v.word, "control: %s as root's own job: %s", attack, v)
	}
	for _, l := range lends(job) {
		t.Run(l.name, func(t *testing.T) {
			for attack, v := range s.runAttacks(t, place{user: "root", command: l.arguments("--")}, lent...) {
				l.requireHeld(t, attack, v)
			}
			r := s.Root(l.arguments()...) // without a command it is the planted shell that runs
			verdicts := readVerdicts(r.Stdout)
			require.Len(t, verdicts, len(lent), r)
			for attack, v := range verdicts {
				l.requireHeld(t, attack, v)
			}
		})
	}
}

// useMunge tries to order Slurm about: bob's job and a node are none of alice's business.
const useMunge = `scancel --signal=USR1 -u bob; scontrol update nodename=n2 state=drain reason=lent; scontrol show config | grep -c ClusterName; true`

// TestSlurmInALentShell requires that Slurm takes no order from the programs of a jail that root starts.
func TestSlurmInALentShell(t *testing.T) {
	s := sharedSite(t)
	job := s.plantHostileShell(t)
	for _, l := range lends(job) {
		t.Run(l.name, func(t *testing.T) {
			r := s.Root(l.arguments("--", "sh", "-c", useMunge)...)
			assert.Empty(t, s.Drained(), r)
			assert.Equal(t, slices.Contains(l.allowed, "munge-socket"), strings.Contains(r.Stdout, "1"), "as its person it may ask: %s", r)
			assert.Equal(t, harness.Bob, strings.TrimSpace(s.Root("squeue", "-h", "-t", "R", "-u", harness.Bob, "-o", "%u").Stdout))
			s.Resume("n2")
		})
	}
}

// TestDescriptorsOfRoot requires that the programs of a jail get none of the descriptors of the caller, whatever these are.
func TestDescriptorsOfRoot(t *testing.T) {
	s := sharedSite(t)
	job := s.plantHostileShell(t)
	for _, l := range lends(job) {
		t.Run(l.name, func(t *testing.T) {
			dir := t.TempDir()
			var files [3]*os.File
			for i, name := range []string{"in", "out", "err"} {
				path := filepath.Join(dir, name)
				require.NoError(t, os.WriteFile(path, []byte("of root\n"), 0o600))
				file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
				require.NoError(t, err)
				defer file.Close()
				files[i] = file
			}
			ctx, cancel := context.WithTimeout(context.Background(), harness.Timeout)
			defer cancel()
			cmd := s.Exec(ctx, harness.Command{Args: l.arguments("--", attackPath, "run", "streams", "descriptors")})
			cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[1], files[2]
			require.NoError(t, cmd.Run())
			for i, want := range []string{"of root\n", "of root\ndescriptors HELD", "of root\n"} {
				text, err := os.ReadFile(files[i].Name())
				require.NoError(t, err)
				assert.True(t, bytes.HasPrefix(text, []byte(want)), "%d: %s", i, text)
				assert.NotContains(t, string(text), escaped)
				st, err := files[i].Stat()
				require.NoError(t, err)
				assert.Equal(t, os.FileMode(0o600), st.Mode())
			}
		})
	}
}

// TestKeysOfRoot requires that the keyring of root's session stays root's, where no filter refuses keyctl(2).
func TestKeysOfRoot(t *testing.T) {
	s := sharedSite(t)
	look := []string{attackPath, "run", "session-key"}
	r := s.Root(append([]string{attackPath, "with-key"}, look...)...)
	require.Contains(t, r.Stdout, escaped, "control: %s", r)
	for _, user := range []string{"root", "nobody"} {
		r = s.Root(append([]string{attackPath, "with-key", "gojail", "--node=n1", "--state=/run/gojail/%n", "run", "open", "-u", user, "--"}, look...)...)
		assert.Contains(t, r.Stdout, "session-key "+held, r)
	}
}

// TestIdentityIsNotLent requires that root cannot lend the programs of a jail the identity of a third user.
func TestIdentityIsNotLent(t *testing.T) {
	s := sharedSite(t)
	job := s.plantHostileShell(t)
	for _, l := range []lend{
		{command: []string{"enter", job, "-u", "bob"}},
		{command: []string{"enter", job, "-u", "5002"}},
		{command: []string{"enter", job, "-u", "nobody"}},
		{command: []string{"run", "owned", "-u", "bob"}},
		{command: []string{"run", "owned", "-u", "alice"}},
		{login: "5001", command: []string{"run", "owned", "-u", "bob"}},
	} {
		r := s.Root(l.arguments("--", "echo", "lent")...)
		assert.NotZero(t, r.Code, r)
		assert.NotContains(t, r.Stdout, "lent", r)
		assert.Contains(t, r.Stderr, "get no identity of user", r)
	}
	r := s.Root("env", "SUDO_UID=5002", "SUDO_USER=bob", "USER=bob", "gojail", "--node=n1", "--state=/run/gojail/%n", "run", "owned", "--", "cat", "/proc/self/uid_map")
	assert.Equal(t, "0 65534 1", strings.Join(strings.Fields(r.Stdout), " "), "what anybody can set is not believed: %s", r)
}

// TestSocketIsNotShownLater: the start of slurmd shows munge's socket in the sandboxes of jobs, and not in one that was built without.
func TestSocketIsNotShownLater(t *testing.T) {
	s := sharedSite(t)
	ctx, cancel := context.WithTimeout(context.Background(), harness.Timeout)
	defer cancel()
	l := lend{command: []string{"run", "closed", "-u", "nobody"}}
	cmd := s.Exec(ctx, harness.Command{Args: l.arguments("--", "sh", "-c", "echo up; read line; exec "+attackPath+" run munge-socket")})
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	require.NoError(t, s.RestartSlurmd("n1"))
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("gojail-launcher boot")) == 0 }))
	_, err = in.Write([]byte("go on\n"))
	require.NoError(t, err)
	require.True(t, lines.Scan())
	assert.Contains(t, lines.Text(), held)
	require.NoError(t, cmd.Wait())
}

// jailOfSockets is a jail without a PID namespace that shows a socket of the node's.
const jailOfSockets = `[jail.sockets]
root = "/srv/jails/open"
namespaces = []
[[jail.sockets.mounts]]
destination = "/mnt/socket"
source = "/run/munge/munge.socket.2"
`

// TestRunLeavesNoProcess requires that the end of gojail run is that of all that its command has started, whatever was hidden from that.
func TestRunLeavesNoProcess(t *testing.T) {
	s := sharedSite(t)
	require.NoError(t, os.WriteFile(s.Path("/srv/jails/open/mnt/socket"), nil, 0o644))
	require.NoError(t, s.WriteConfig(configuration+jailOfSockets))
	t.Cleanup(func() { require.NoError(t, s.WriteConfig(configuration)) })
	const leave = `setsid sleep 1207 >/dev/null 2>&1 </dev/null & until grep -q sleep /proc/$!/cmdline; do :; done; grep -c /mnt/socket /proc/self/mountinfo`
	for _, user := range []string{"root", "nobody"} {
		l := lend{command: []string{"run", "sockets", "-u", user}}
		r := s.Root(l.arguments("--", "sh", "-c", leave)...)
		assert.Equal(t, "0", strings.TrimSpace(r.Stdout), r)
		assert.Empty(t, s.Find("sleep 1207"), user)
		s.endProcesses("sleep 1207")
	}
}

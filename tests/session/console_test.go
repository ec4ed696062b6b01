// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

const password = "correct-horse"

// sharedConsole returns a login node in which alice and bob have a password, and su and login(1) can be run on a terminal.
func sharedConsole(t *testing.T, table string) *site {
	t.Helper()
	s := sharedLoginNode(t, table)
	text, err := os.ReadFile("testdata/console.pl")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.Path("/srv/console.pl"), text, 0o755))
	require.Zero(t, s.Root("sh", "-ec", "touch /run/utmp /var/log/wtmp; printf 'alice:"+password+"\\nbob:"+password+"\\n' | chpasswd").Code)
	t.Cleanup(func() {
		s.Root("sh", "-c", "rm -f /run/utmp /var/log/wtmp /srv/console.pl; usermod -p '*' alice; usermod -p '*' bob")
	})
	return s
}

// runOnTerminal runs a command on a terminal of its own. lines are pairs: what the terminal shows, as a pattern, and what is typed then; a
// command after an exclamation mark is run outside the terminal instead.
func (s *site) runOnTerminal(user string, lines []string, command ...string) harness.Result {
	script := ""
	for i := 0; i+1 < len(lines); i += 2 {
		script += lines[i] + "\t" + lines[i+1] + "\n"
	}
	return s.Do(harness.Command{User: user, Stdin: script, Args: append([]string{"/srv/console.pl"}, command...)})
}

const prompt = `\$ $` // of a shell

// answers returns the lines of a log-in by login(1), and then commands at the shell's prompt.
func answers(user, word string, commands ...string) []string {
	lines := []string{"login: ", user, "assword: ", word}
	for _, command := range commands {
		lines = append(lines, prompt, command)
	}
	return lines
}

// requireShell requires that a user's login shell printed what is there after the command of that name, and with control that it has job control.
func requireShell(t *testing.T, where, user string, control bool, r harness.Result) {
	t.Helper()
	flags := map[bool]string{true: `\w*im`, false: `\w*i\w*`}[control]
	assert.Regexp(t, "in "+where+" as "+user+` \d+ -bash `+flags, r.Stdout, r)
}

// what prints where a shell is, and that it is a login shell with job control: the flag m.
const what = `echo "in $(cat /etc/gojail-jail 2>/dev/null || echo NODE) as $(id -un) $(cat /proc/self/loginuid) $0 $-"`

// TestConsoleLogin requires that login(1) starts a login shell in the jail that controls the terminal, with the audit login uid, utmp and
// wtmp of a session on the node, which is bob's.
func TestConsoleLogin(t *testing.T) {
	s := sharedConsole(t, loginTable)
	hasAudit := s.Root("test", "-e", "/proc/self/loginuid").Code == 0
	seen := map[string]int{}
	for user, want := range map[string]struct{ where, uid string }{harness.Alice: {"debian", "5001"}, harness.Bob: {"NODE", "5002"}} {
		lines := append(answers(user, password, what, "sh -c 'echo sleeps$((6+1)); exec sleep 7009'"), "sleeps7", "\x03",
			prompt, "echo code$?", prompt, "echo waits$((6+1)); read; exit 5", `waits7\r\n`, "!who /run/utmp; who /var/log/wtmp", "", "")
		r := s.runOnTerminal("root", lines, "login")
		require.Contains(t, r.Stdout, "ended 0", r)
		assert.Contains(t, r.Stdout, "code130", r)
		shell := regexp.MustCompile(`in ` + want.where + ` as ` + user + ` (\d+) -bash \w*im`).FindStringSubmatch(r.Stdout)
		require.NotNil(t, shell, r)
		if hasAudit {
			assert.Equal(t, want.uid, shell[1], "the login uid of %s", user)
		}
		terminal := regexp.MustCompile(`^on /dev/(pts/\d+)`).FindStringSubmatch(r.Stdout)[1]
		seen[user] = strings.Count(r.Stdout, "\n"+user+strings.Repeat(" ", 9-len(user))+terminal+" ")
	}
	assert.Equal(t, seen[harness.Bob], seen[harness.Alice], "utmp and wtmp of a session on the node and of one in the jail")
}

// TestConsoleLoginRefused requires a line, and no shell on the node, where the session cannot be in the jail; and the node for exempt groups.
func TestConsoleLoginRefused(t *testing.T) {
	s := sharedConsole(t, loginTable)
	config := configuration + loginTable
	broken := strings.Replace(config, "root = \"/srv/jails/debian\"\n[[", "root = \"/srv/none\"\n[[", 1)
	elsewhere := strings.Replace(config, "login[1-2]", "login2", 1)
	for _, test := range []struct {
		config, why string
		command     []string
	}{
		{broken, "jail root /srv/none does not exist", []string{"login"}},
		{broken, "jail root /srv/none does not exist", []string{"su", "-", "alice"}},
		{elsewhere, "you have no job in a jail on this node", []string{"su", "-P", "-", "alice"}},
	} {
		require.NoError(t, s.WriteConfig(test.config))
		lines, code := answers(harness.Alice, password, what), "0"
		if test.command[0] == "su" {
			lines, code = lines[4:], "1"
		}
		r := s.runOnTerminal("root", lines, test.command...)
		assert.Contains(t, r.Stdout, "gojail: "+test.why, r)
		assert.NotContains(t, r.Stdout, " as alice ", r)
		assert.Contains(t, r.Stdout, "ended "+code+"\n", r)
	}
	require.NoError(t, s.WriteConfig(config+"[session]\nexempt = [\"alice\"]\n"))
	requireShell(t, "NODE", harness.Alice, true, s.runOnTerminal("root", answers(harness.Alice, password, what, "exit"), "login"))
	requireShell(t, "NODE", harness.Alice, true, s.runOnTerminal("root", answers(harness.Alice, password, what, "exit")[4:], "su", "-", "alice"))
	require.NoError(t, s.WriteConfig(config))
	again := answers(harness.Alice, password, what, "exit")
	again[0] = `incorrect[\s\S]*login: `
	// This session removes, at its end, what those left that were refused.
	r := s.runOnTerminal("root", append(answers(harness.Alice, "wrong"), again...), "login")
	assert.Regexp(t, `^on \S+\s+(\w+ )?login: alice\s+Password: \s+Login incorrect\s`, r.Stdout, r)
	requireShell(t, "debian", harness.Alice, true, r)
}

// TestSuOnATerminal requires that su, of root or of a user who knows the password, brings into the jail, and not past it by another
// shell. Without a terminal of its own (-P) there is no job control: that of the caller's session is left to it.
func TestSuOnATerminal(t *testing.T) {
	s := sharedConsole(t, loginTable)
	for _, test := range []struct {
		user    string
		control bool
		su      []string
	}{
		{"root", false, []string{"su", "-", "alice"}},
		{"root", true, []string{"su", "-P", "-", "alice"}},
		{harness.Bob, false, []string{"su", "-", "alice"}},
		{harness.Bob, true, []string{"su", "-P", "-", "alice"}},
	} {
		lines := append(answers(harness.Alice, password, what, "exit 7")[2:], "nothing", "")
		if test.user == "root" {
			lines = lines[2:]
		}
		r := s.runOnTerminal(test.user, lines, "sh", "-c", strings.Join(test.su, " ")+"; code=$?; exit $code")
		requireShell(t, "debian", harness.Alice, test.control, r)
		assert.Contains(t, r.Stdout, "ended 7\n", r)
	}
	for _, su := range []string{"su -s /bin/bash alice", "su -m alice", "su -l -s /bin/sh alice", "su alice"} {
		r := s.runOnTerminal(harness.Bob, []string{"assword: ", password}, "sh", "-c", su+" -c '"+where+"'")
		assert.Contains(t, r.Stdout, "debian\r\n", "%s: %v", su, r)
		assert.NotContains(t, r.Stdout, "ON THE NODE", "%s: %v", su, r)
	}
}

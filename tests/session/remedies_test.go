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

// remedies are the forms of the remedies of gojail check about sessions, and what a person does who reads them.
var remedies = []struct {
	form *regexp.Regexp
	do   string // a command of a shell, with $1 for what was found
}{
	{regexp.MustCompile(`; write to (\S+), above any Match and in place of other lines of (\w+): (.+)$`), `sed -i '/^ *$2 /d' $1; sed -i '1i $3' $1`},
	{regexp.MustCompile(`; write at the end of (\S+), in place of other lines of (\w+): (.+), and below it: (.+)$`), `sed -i '/^ *$2 /d' $1; printf '%s\n' '$3' '$4' >>$1`},
	{regexp.MustCompile(`; add this line to (\S+), above any Match: (.+)$`), `sed -i '1i $2' $1`},
	{regexp.MustCompile(`; remove (ChrootDirectory) from sshd_config$`), `sed -i '/^$1 /d' /etc/ssh/sshd_config`},
	{regexp.MustCompile(`; run: (.+)$`), `$1`},
	{regexp.MustCompile(`; write (\S+) in place of (\S+) in the line of (\S+) in (\S+)$`), `sed -i '/$3/s/$2/$1/' $4`},
	{regexp.MustCompile(`; write (\S+) in place of (\S+) in (\S+)$`), `sed -i 's|$2|$1|' $3`},
	{regexp.MustCompile(`; move the line of (\S+) from (\S+) to (\S+), above all its account lines and includes$`), `l=$$(grep $1 $2); sed -i '/$1/d' $2; sed -i "1i $$l" $3`},
	{regexp.MustCompile(`; add this line below the other account lines of (\S+): (.+)$`), `echo '$2' >>$1`},
	{regexp.MustCompile(`; add (\S+) to the line of (\S+) in (\S+)$`), `sed -i '/$2/s/$$/ $1/' $3`},
	{regexp.MustCompile(`[;,] (?:or )?remove the line of (\S+) from (\S+)$`), `sed -i '/$1/d' $2`},
	{regexp.MustCompile(`; remove (\S+=\S+) from (\S+)$`), `sed -i 's/$1//' $2`},
	{regexp.MustCompile(`/etc/shells lists (\S+): .*; remove it from (/etc/shells)$`), `sed -i '\|$1|d' $2`},
	{regexp.MustCompile(`; write to (\S+), in place of other lines of (\w+): (.+)$`), `sed -i '/^$2=/d' $1 2>/dev/null; echo '$3' >>$1`},
	{regexp.MustCompile(`: (\S+): "(.*)" is no line of this file: .*; correct or remove that line;.*$`), `grep -vF "$$(printf '$2')" $1 >$1.new; mv $1.new $1`},
}

// restart starts sshd with what its configuration is now. It writes the file when it listens. A minute is a hang.
const restart = "pid=$(cat /run/sshd.pid 2>/dev/null) && kill $pid; i=0; while [ -n \"$pid\" ] && [ -e /proc/$pid ] && [ $((i += 1)) -lt 1200 ]; do sleep 0.05; done; " +
	"rm -f /run/sshd.pid; /usr/sbin/sshd -E /var/log/sshd && { while [ ! -s /run/sshd.pid ] && [ $((i += 1)) -lt 1200 ]; do sleep 0.05; done; [ -s /run/sshd.pid ]; }"

// carryOut runs the command that a line of gojail check asks for. The machine has no systemd.
func (s *site) carryOut(t *testing.T, line string) {
	t.Helper()
	line, reloads := strings.CutSuffix(strings.Replace(line, " restart ssh", " reload ssh", 1), "; then run: sshd -t && systemctl reload ssh")
	for _, r := range remedies {
		if found := r.form.FindStringSubmatchIndex(line); found != nil {
			command := string(r.form.ExpandString(nil, r.do, line, found))
			if reloads {
				command += "; sshd -t && { " + restart + "; }"
			}
			done := s.Root("sh", "-c", command)
			require.Zero(t, done.Code, "%s: %v", command, done)
			return
		}
	}
	require.FailNow(t, "no remedy that can be carried out", line)
}

// sshdOfTheNode is the sshd_config of docs/sessions.md, which gojail check reads.
const sshdOfTheNode = `Port 2203
ListenAddress 127.0.0.1
HostKey /etc/ssh/host
PidFile /run/sshd.pid
AuthorizedKeysFile /etc/ssh/keys/%u
UsePAM yes
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 100
Subsystem sftp internal-sftp
` + sshdLines + `Match User *,!root
    ForceCommand ` + program + `
`

// mistake is one that a site makes with sessions.
type mistake struct {
	name, command string
	want          string // line of gojail check, in part
	session       string // what a session of alice's prints: jail, and cgroup
	hand          string // command for a remedy that leaves a choice to a person
	undo          string // undoes what the mistake changed outside of /etc
}

const (
	good      = "debian /step_extern"
	unadopted = "debian"
	refused   = ""
)

const (
	modules = "account required pam_slurm_adopt.so nodename=n1"
	forward = "; sed -i '1i AllowTcpForwarding no' SSHD" // of which check says the same
)

var mistakes = []mistake{
	{name: "no ForceCommand", command: "sed -i '/^Match/d; /ForceCommand/d' SSHD", want: "FAIL  sessions: sshd has no ForceCommand: its internal-sftp reads and writes files of the node", session: good},
	{name: "a ForceCommand that is not there", command: "sed -i 's/gojail-session$/gojail-sesion/' SSHD; sed -i 's/^XAuth.*gojail-sesion$/&/' SSHD", want: "gojail-sesion, which is not PROGRAM: ", session: refused},
	{name: "a ForceCommand of another directory", command: "sed -i 's|ForceCommand .*|ForceCommand /opt/nope/gojail-session|' SSHD", want: "FAIL  sessions: sshd starts /opt/nope/gojail-session, which is not", session: good},
	{name: "a ForceCommand in quotes", command: `sed -i 's|ForceCommand .*|ForceCommand "PROGRAM"|' SSHD`, want: `FAIL  sessions: sshd starts "PROGRAM", which is not`, session: refused},
	{name: "a ForceCommand with arguments", command: "sed -i 's|ForceCommand .*|ForceCommand PROGRAM -l|' SSHD", want: "FAIL  sessions: sshd starts PROGRAM -l, which is not", session: refused},
	{name: "a Match of one user", command: "sed -i 's|^Match.*|Match User bob|' SSHD", want: "FAIL  sessions: sshd has no ForceCommand for alice: its internal-sftp", session: good},
	{name: "a Match that nobody is", command: "sed -i 's|^Match.*|Match User !root|' SSHD", want: "FAIL  sessions: sshd has no ForceCommand: its internal-sftp", session: good},
	{name: "a Match before", command: "sed -i 's|^Match.*|Match User alice\\n ForceCommand /bin/echo the date\\n&|' SSHD", want: "WARN  sessions: sshd starts /bin/echo the date for alice: sessions are in a jail only if that starts PROGRAM", session: "the date"},
	{name: "ChrootDirectory", command: "sed -i '1i ChrootDirectory /srv' SSHD", want: "FAIL  sessions: sshd changes its root to /srv", session: refused},
	{name: "UsePAM no", command: "sed -i 's/^UsePAM.*/UsePAM no/' SSHD", want: "WARN  sessions: sshd does not use PAM", session: unadopted},
	{name: "PermitUserRC twice", command: "sed -i '1i PermitUserRC yes' SSHD", want: "FAIL  sessions: sshd executes ~/.ssh/rc", session: good},
	{name: "PermitUserEnvironment", command: "echo 'Match all' >>SSHD; sed -i '1i PermitUserEnvironment yes' SSHD", want: "FAIL  sessions: sshd gives programs on the node", session: good},
	{name: "no AcceptEnv", command: "sed -i /AcceptEnv/d SSHD", want: "WARN  sessions: sshd does not accept SLURM_JOB_ID and SLURM_JAIL", session: good},
	{name: "another xauth", command: "sed -i /XAuthLocation/d SSHD", want: "WARN  sessions: sshd stores the cookie", session: good},
	{name: "sockets of the node", command: "sed -i /AllowStreamLocal/d SSHD", want: "WARN  sessions: users reach Unix sockets of the node", session: good},
	{name: "no host key", command: "sed -i 's|^HostKey.*|HostKey /etc/ssh/nope|' SSHD", want: "FAIL  sessions: sshd does not start, and no session begins: ", session: refused, hand: "sed -i 's|^HostKey.*|HostKey /etc/ssh/host|' SSHD"},
	{name: "a host key that others may read", command: "chmod 644 /etc/ssh/host", want: "FAIL  sessions: sshd does not start, and no session begins: ", session: refused, hand: "chmod 600 /etc/ssh/host"},
	{name: "an unknown word", command: "echo Nonsense yes >>SSHD", want: "FAIL  sessions: sshd does not start, and no session begins: ", session: refused, hand: "sed -i /Nonsense/d SSHD"},

	{name: "an optional pam_slurm_adopt", command: "sed -i '/pam_slurm_adopt/s/required/optional/' STACK", want: "WARN  sessions: pam_slurm_adopt.so is optional in /etc/pam.d/sshd", session: good},
	{name: "no pam_slurm_adopt", command: "sed -i /pam_slurm_adopt/d STACK" + forward, want: "WARN  sessions: no pam_slurm_adopt: ", session: unadopted},
	{name: "a module that is not there", command: "sed -i s/pam_slurm_adopt/pam_slurm_adop/ STACK", want: "FAIL  sessions: /etc/pam.d/sshd names the module pam_slurm_adop.so, which does not exist", session: refused,
		hand: "sed -i s/pam_slurm_adop.so/pam_slurm_adopt.so/ STACK"},
	{name: "a module that may be missing", command: "sed -i 's/^account required pam_slurm_adopt/-account required pam_slurm_adop/' STACK", want: "FAIL  sessions: /etc/pam.d/sshd names the module pam_slurm_adop.so", session: refused,
		hand: "sed -i s/pam_slurm_adop.so/pam_slurm_adopt.so/ STACK"},
	{name: "another path of the module", command: "sed -i s:pam_slurm_adopt:/usr/lib/slurm/pam_slurm_adopt: STACK", want: "FAIL  sessions: /etc/pam.d/sshd names the module /usr/lib/slurm/pam_slurm_adopt.so", session: refused},
	{name: "pam_slurm_adopt as session", command: "sed -i '/pam_slurm_adopt/s/account/session/' STACK" + forward, want: "FAIL  sessions: pam_slurm_adopt.so has a line of kind session in /etc/pam.d/sshd", session: refused},
	{name: "pam_slurm_adopt as auth", command: "sed -i '/pam_slurm_adopt/s/account/auth/' STACK" + forward, want: "FAIL  sessions: pam_slurm_adopt.so has a line of kind auth in /etc/pam.d/sshd", session: unadopted},
	{name: "pam_slurm_adopt after the end", command: "sed -i '/pam_slurm_adopt/i account sufficient pam_permit.so' STACK" + forward, want: "WARN  sessions: PAM does not reach the line of pam_slurm_adopt.so: pam_permit.so in /etc/pam.d/sshd", session: unadopted},
	{name: "pam_slurm_adopt where a line is skipped", command: "sed -i /pam_slurm_adopt/d STACK; sed -i '/success=1/a " + modules + "' /etc/pam.d/common-account",
		want: "FAIL  sessions: pam_unix.so in /etc/pam.d/common-account skips the line of pam_slurm_adopt.so, and pam_deny.so refuses every session", session: refused},
	{name: "pam_slurm_adopt in a file of no service", command: "grep pam_slurm_adopt STACK >/etc/pam.d/ssh; sed -i /pam_slurm_adopt/d STACK" + forward, want: "WARN  sessions: no pam_slurm_adopt: ", session: unadopted},
	{name: "an unknown control", command: "sed -i '/pam_slurm_adopt/s/required/require/' STACK", want: "FAIL  sessions: the account line of pam_slurm_adopt.so in /etc/pam.d/sshd refuses every session", session: refused,
		hand: "sed -i '/pam_slurm_adopt/s/require/required/' STACK"},
	{name: "pam_shells", command: "echo account required pam_shells.so >>STACK", want: "FAIL  sessions: pam_shells.so refuses users whose login shell is gojail-session", session: refused},
	{name: "pam_namespace", command: "echo session required pam_namespace.so >>STACK; echo '/tmp /tmp/inst/ level root' >/etc/security/namespace.d/x.conf; mkdir -m 0 /tmp/inst", want: "FAIL  sessions: pam_namespace.so puts", session: refused,
		undo: "rm -rf /etc/security/namespace.d/x.conf /tmp/inst"},
	{name: "user_readenv", command: "echo session required pam_env.so user_readenv=1 >>STACK", want: "FAIL  sessions: PAM gives sshd's programs", session: good},

	{name: "another login shell", command: "usermod -s /bin/bash alice", want: "WARN  sessions: sshd starts the login shell of alice on the node", session: good},
	{name: "a login shell that is not there", command: "usermod -s /opt/nope/gojail-session alice 2>/dev/null", want: "WARN  sessions: the login shell of alice is no program", session: refused},
	{name: "listed in /etc/shells", command: "echo PROGRAM >>/etc/shells", want: "WARN  sessions: /etc/shells lists PROGRAM", session: good},
	{name: "a program for root", command: "chmod 4700 PROGRAM", want: "FAIL  sessions: users may not execute PROGRAM", session: refused},
	{name: "a program in a closed directory", command: "chmod 700 LIB", want: "FAIL  sessions: users may not execute PROGRAM", session: refused, undo: "chmod 755 LIB"},
	{name: "a program without its bit", command: "chmod 755 PROGRAM", want: "FAIL  sessions: PROGRAM is not set-user-ID root", session: refused},
	{name: "a program with two names", command: "ln PROGRAM LIB/other", want: "FAIL  sessions: PROGRAM has 2 names", session: refused, undo: "rm -f LIB/other"},
	{name: "no program", command: "mv PROGRAM LIB/was", want: "FAIL  sessions: PROGRAM: no such file or directory", session: refused, hand: "mv LIB/was PROGRAM"},

	{name: "no session.conf", command: "rm SESSION", want: "FAIL  sessions: gojail-session uses state=/run/gojail, but the plugin state=/run/gojail/n1", session: refused},
	{name: "another node", command: "sed -i s/n1/n2/ SESSION", want: "FAIL  sessions: gojail-session takes this node for n2, but its name in Slurm is n1", session: refused},
	{name: "another state directory", command: "sed -i s:/run/gojail:/run/gojial: SESSION", want: "FAIL  sessions: gojail-session uses state=/run/gojial/n1, but the plugin state=/run/gojail/n1", session: refused, undo: "rm -rf /run/gojial"},
	{name: "an unknown line", command: "echo nod=n1 >>SESSION", want: `FAIL  sessions: /etc/gojail/session.conf: "nod=n1" is no line`, session: refused},
	{name: "a session.conf from Windows", command: `sed -i 's/$/\r/' SESSION`, want: `FAIL  sessions: /etc/gojail/session.conf: "state=/run/gojail/%n\r" is no line`, session: refused, hand: `sed -i 's/\r//' SESSION`},
	{name: "a session.conf that others may write", command: "chmod 666 SESSION", want: "FAIL  sessions: /etc/gojail/session.conf is not a file that only root can change", session: refused},
}

// listFaults returns the lines of gojail check that are not OK, but those of the machine that the cluster is on.
func (s *site) listFaults(machine string) (lines []string) {
	for line := range strings.Lines(s.Gojail("n1", "check").Stdout) {
		if !strings.HasPrefix(line, "OK") && !strings.Contains(machine, line) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// prepareNode is a script that sets up sessions as docs/sessions.md says, for alice and bob, who are the only people. An sshd that punishes clients
// would refuse them after the rows in which it refuses sessions (PerSourcePenalties of sshd_config(5)).
const prepareNode = `cd /etc
usermod -s ` + program + ` bob
awk -F: -v OFS=: '$3 >= 1000 && $3 < 65534 && $1 != "alice" && $1 != "bob" { $7 = "/bin/false" } 1' passwd >passwd.new
cat passwd.new >passwd
sed -i s/user_readenv=1// pam.d/sshd
echo '` + modules + `' >>pam.d/sshd
: >cron.allow
: >at.allow
touch debian_version
cat >ssh/sshd_config <<'E'
` + sshdOfTheNode + `E
sed '1i PerSourcePenalties no' ssh/sshd_config >ssh/lenient
if sshd -t -f ssh/lenient 2>/dev/null; then mv ssh/lenient ssh/sshd_config; fi
mkdir /var/tmp/etc
cp -a ssh pam.d gojail passwd shells /var/tmp/etc
` + restart

// TestRemediesOfSessions makes each mistake, requires that gojail check names it and that a session is what the row says, does what check says,
// word for word, until no line is left, and requires that users' sessions are in their jail and in their job's cgroup.
func TestRemediesOfSessions(t *testing.T) {
	if why := findMissing(); why != "" {
		t.Skip(why)
	}
	s, err := newSite(harness.Options{Constrain: true, SlurmConf: map[string]string{"PrologFlags": "Contain", "Prolog": libDir + "prolog-1"}})
	if s != nil {
		t.Cleanup(func() { require.NoError(t, s.Stop()) })
	}
	require.NoError(t, err)
	s.ShowLogs(t)
	require.NoError(t, s.WriteConfig(strings.Split(harness.DefaultConfig, "[jail.other]")[0])) // one jail, since check looks at all
	r := s.Root("sh", "-ec", prepareNode)
	require.Zero(t, r.Code, r)
	machine := strings.Join(s.listFaults(""), "\n") + "\n"
	require.NotContains(t, machine, "sessions: ")
	for _, user := range []string{harness.Alice, harness.Bob} {
		s.startJob(t, user, "--jail=debian")
	}
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) { s.requireMended(t, machine, m) })
	}
}

func (s *site) requireMended(t *testing.T, machine string, m mistake) {
	places := strings.NewReplacer("LIB", strings.TrimSuffix(libDir, "/"), "SSHD", "/etc/ssh/sshd_config", "PROGRAM", program, "STACK", "/etc/pam.d/sshd", "SESSION", "/etc/gojail/session.conf")
	session := func(user string) string {
		r := s.runSSH(user, "none", "2203", "cat /etc/gojail-jail; grep -om1 /step_extern /proc/self/cgroup; true")
		if r.Code != 0 {
			return refused
		}
		return strings.Join(strings.Fields(r.Stdout), " ")
	}
	again := ":" // sshd is as it was
	if strings.Contains(m.command, "SSHD") || strings.Contains(m.command, "/etc/ssh/") {
		again = restart
	}
	t.Cleanup(func() {
		r := s.Root("sh", "-c", "cd /etc; rm -rf ssh pam.d gojail; cp -a /var/tmp/etc/. .; "+places.Replace("chown root PROGRAM; chmod 4755 PROGRAM\n"+m.undo)+"\n"+again)
		assert.Zero(t, r.Code, r)
	})
	r := s.Root("sh", "-ec", places.Replace(m.command))
	require.Zero(t, r.Code, r)
	s.Root("sh", "-c", again) // it may not start
	if strings.Contains(m.hand, "host") {
		_, err := os.Stat(s.Path("/run/sshd.pid"))
		assert.Error(t, err, "sshd has started")
	}
	assert.Equal(t, m.session, session(harness.Alice), "a session with the mistake")
	lines := s.listFaults(machine)
	assert.Contains(t, strings.Join(lines, "\n"), places.Replace(m.want))
	for i := 0; i < 6 && len(lines) > 0; i++ {
		if i == 0 && m.hand != "" {
			r := s.Root("sh", "-c", places.Replace(m.hand)+"; "+again)
			require.Zero(t, r.Code, r)
		} else {
			s.carryOut(t, lines[0])
		}
		lines = s.listFaults(machine)
	}
	require.Empty(t, lines)
	for _, user := range []string{harness.Alice, harness.Bob} {
		assert.Equal(t, good, session(user), "%s after the remedy", user)
	}
}

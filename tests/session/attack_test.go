// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// where is a script that prints the name of the jail, or ON THE NODE.
const where = "if [ -e /etc/gojail-jail ]; then cat /etc/gojail-jail; else echo ON THE NODE; fi"

// runAsAlice runs a shell script of alice's on the node, in which $P is gojail-session.
func (s *site) runAsAlice(script string) harness.Result {
	return s.Run(harness.Alice, "bash", "-c", "P="+program+"; W='"+where+"'; "+script)
}

// TestNothingOfTheCallerGetsIn covers the caller's environment, descriptors, names and arguments.
func TestNothingOfTheCallerGetsIn(t *testing.T) {
	s := sharedSite(t)
	job := s.startJob(t, harness.Alice, "--jail=debian")
	r := s.runAsAlice("env LD_PRELOAD=/x.so LD_LIBRARY_PATH=/x GCONV_PATH=/x LOCPATH=/x BASH_ENV=/x ENV=/x HOME=/x PATH=/x IFS=x SLURMD_NODENAME=../../x " +
		"TERM=vt100 LANG=C.UTF-8 LC_TIME=C SSH_TTY=/dev/pts/9 FOO=bar SLURM_JOB_ID=" + job + " $P -c 'exec 2>&1; /usr/bin/env | /usr/bin/sort'")
	requireOutput(t, strings.Join([]string{"HOME=/home/alice", "LANG=C.UTF-8", "LC_TIME=C", "LOGNAME=alice", "PATH=/usr/local/bin:/usr/bin:/bin", "PWD=/home/alice",
		"SHELL=/bin/bash", "SHLVL=1", "SLURM_JAIL=debian", "SLURM_JOB_ID=" + job, "SSH_TTY=/dev/pts/9", "TERM=vt100", "USER=alice", "_=/usr/bin/env"}, "\n"), r)
	requireOutput(t, "0 1 2 3", s.runAsAlice("exec 3</ 4</etc/passwd 9<>/tmp/node; $P -c 'echo $(ls /proc/self/fd)'"))
	requireOutput(t, "", s.runAsAlice("exec <&- >&- 2>&-; $P -c '("+where+"; ls -l /proc/self/fd) >/tmp/closed 2>&1'"))
	r = s.runAsAlice("$P -c 'cat /tmp/closed'")
	assert.Regexp(t, `^debian\n`, r.Stdout, r)
	assert.Regexp(t, ` 0 -> /dev/(null|full)\n.* 1 -> /tmp/closed\n.* 2 -> /tmp/closed\n.* 3 -> /proc/\d+/fd\n$`, r.Stdout, r)
	for _, script := range []string{"exec -a '' $P -c \"$W\"", "exec -a /home/alice/lib/gojail/gojail-session $P -c \"$W\"", "ln -sf $P link; ./link -c \"$W\"",
		"exec -a -N../../home/alice $P -c \"$W\"", "cd /tmp; umask 777; nice -n 19 $P -c \"$W\"", "trap '' HUP INT TERM CHLD PIPE; $P -c \"$W\"",
		"SSH_ORIGINAL_COMMAND=\"$W\" $P", "SSH_ORIGINAL_COMMAND=\"$W\" $P -c $P", "perl -e 'alarm 5; exec @ARGV' $P -c \"sleep 6; $W\""} {
		r := s.runAsAlice(script)
		assert.Equal(t, "debian\n", r.Stdout, "%s: %v", script, r)
	}
	r = s.runAsAlice("trap '' HUP INT TERM CHLD PIPE; $P -c 'grep -E ^Sig[IB] /proc/self/status'")
	requireOutput(t, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000", r)
	r = s.runAsAlice("perl -e 'exec {$ARGV[0]} ()' $P")
	assert.NotContains(t, r.Stdout, "NODE", r)
}

// TestLimitsOfTheCaller requires that the part with root's rights does not depend on the caller's limits, and that the session has them.
func TestLimitsOfTheCaller(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	const lowered = "ulimit -f 100; ulimit -n 50; ulimit -u 200; umask 067; $P -c 'echo $(ulimit -f) $(ulimit -n) $(ulimit -u) $(umask | cut -c2-)'"
	requireOutput(t, "100 50 200 067", s.runAsAlice(lowered))
	requireOutput(t, "100 50 200 067", s.Root("setpriv", "--bounding-set=-sys_resource,-sys_nice", "--reuid=5001", "--regid=5001", "--clear-groups", "--inh-caps=-all",
		"bash", "-c", "P="+program+"; "+lowered)) // as in some containers
	for _, limit := range []string{"-n 0", "-n 3", "-f 0", "-u 0", "-u 1", "-t 0", "-t 1", "-d 0", "-v 5000", "-s 0", "-s 100", "-l 0", "-i 0", "-q 0", "-x 0", "-c 0"} {
		r := s.runAsAlice("ulimit " + limit + "; exec $P -c \"$W\"")
		assert.Contains(t, []string{"debian\n", ""}, r.Stdout, "%s: %v", limit, r)
		if r.Stdout == "" {
			assert.NotZero(t, r.Code, "%s: %v", limit, r)
		}
	}
}

// TestNoDescriptorKeepsRoot: an error that nobody reads holds no process of root's, and so nothing of a job.
func TestNoDescriptorKeepsRoot(t *testing.T) {
	s := sharedSite(t)
	t.Cleanup(func() {
		for _, p := range s.Find("sleep 7031") { // which holds the pipe, and never reads
			s.Root("kill", strconv.Itoa(p.Pid))
		}
	})
	full := `perl -e 'use Fcntl; $^F = 9; pipe R, W; if (!fork) { close STDOUT; close STDERR; exec qw(sleep 7031) } fcntl W, F_SETFL, O_NONBLOCK; ` +
		`1 while syswrite W, "x"; fcntl W, F_SETFL, 0; open STDERR, ">&W"; exec @ARGV' $P`
	requireOutput(t, "ended", s.runAsAlice(full+"; echo ended")) // there is no job
	require.Len(t, s.Find("sleep 7031"), 1, "the pipe was full until then")
}

// TestManyVariables: a client's variables do not replace those that sshd and PAM set.
func TestManyVariables(t *testing.T) {
	s := sharedSite(t)
	first, second := s.startJob(t, harness.Alice, "--jail=debian"), s.startJob(t, harness.Alice, "--jail=debian")
	for _, job := range []string{first, second} {
		requireOutput(t, job, s.runAsAlice("env -i $(seq -f LC_%g=x 40) SLURM_JOB_ID="+job+" $P -c 'echo $SLURM_JOB_ID'"))
	}
}

// TestRootIsTheNodesOnly requires one line and no session without the set-user-ID bit, by another path, in other namespaces, and traced.
func TestRootIsTheNodesOnly(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	s.installHarasser(t)
	require.Zero(t, s.Root("sh", "-ec", "mkdir /srv/mine; chown alice: /srv/mine; ln "+program+" /srv/mine/gojail-session; cp -p "+program+" /srv/copy").Code)
	t.Cleanup(func() { s.Root("rm", "-r", "/srv/mine", "/srv/copy") })
	requireRefused(t, "/srv/mine/gojail-session, or a directory above it, can be changed by others than root", s.runAsAlice("/srv/mine/gojail-session -c \"$W\""))
	require.Zero(t, s.Root("rm", "/srv/mine/gojail-session").Code)
	require.Zero(t, s.Root("chmod", "755", "/srv/copy").Code)
	requireRefused(t, "gojail-session does not run as root", s.runAsAlice("/srv/copy -c \"$W\""))
	requireRefused(t, "gojail-session does not run as root", s.runAsAlice("/harass traced $P -c \"$W\""))
	requireRefused(t, "gojail-session does not run as root", s.runAsAlice("setpriv --no-new-privs $P -c \"$W\""))
	requireRefused(t, "gojail-session runs in a user namespace", s.runAsAlice("unshare -Ur $P -c \"$W\""))
	requireRefused(t, "gojail-session runs in another mount namespace", s.Root("unshare", "-m", "setpriv", "--reuid=5001", "--regid=5001", "--clear-groups", program, "-c", where))
}

// TestSessionFromAJail calls the program in a jail in which set-user-ID programs work.
func TestSessionFromAJail(t *testing.T) {
	s := sharedSite(t)
	inside := s.Path("/srv/jails/other/opt/gojail-session")
	require.Zero(t, s.Root("sh", "-ec", "cp -p "+program+" /srv/jails/other/opt/gojail-session; cp -r /etc/gojail /srv/jails/other/etc").Code)
	t.Cleanup(func() {
		os.Remove(inside)
		os.RemoveAll(s.Path("/srv/jails/other/etc/gojail"))
	})
	for jail, why := range map[string]string{"lax": "runs in another mount namespace", "laxpid": "runs in another mount namespace", "other": "does not run as root"} {
		r := s.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail="+jail, "/opt/gojail-session", "-c", where)
		assert.Empty(t, r.Stdout, "%s: %v", jail, r)
		assert.Contains(t, r.Stderr, "gojail: gojail-session "+why, "%s: %v", jail, r)
	}
}

// TestConfigurationOfOthers requires that a configuration is refused that somebody other than root could write.
func TestConfigurationOfOthers(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	const conf = "/etc/gojail/session.conf"
	for why, script := range map[string]string{
		conf + " is not a file that only root can change": "chmod 666 " + conf,
		conf + " is not a file":                           "mv " + conf + " /tmp/conf; ln -s /tmp/conf " + conf,
		conf + `: unknown line "stat=/x"`:                 "echo stat=/x >>" + conf,
		conf + `: unknown line "node=../x"`:               "echo node=../x >>" + conf,
		"plugstack.conf: config= and state=":              "echo config=x >>" + conf,
		"the state directory /run/gojail/n1":              "chmod 777 /run/gojail/n1",
		program + ", or a directory above":                "chmod 777 " + filepath.Dir(program),
	} {
		require.Zero(t, s.Root("sh", "-ec", "cp "+conf+" /root/conf; "+script).Code)
		r := s.runAsAlice("$P -c \"$W\"")
		require.Zero(t, s.Root("sh", "-ec", "rm "+conf+"; mv /root/conf "+conf+"; chmod 644 "+conf+"; chmod 700 /run/gojail/n1; chmod 755 "+filepath.Dir(program)).Code)
		requireRefused(t, why, r)
	}
	requireOutput(t, "debian", s.runAsAlice("$P -c \"$W\""))
}

// TestRecordsOfOthers requires that records of an earlier job or of another process do not count as sandboxes of the user's.
func TestRecordsOfOthers(t *testing.T) {
	s := sharedSite(t)
	job := s.startJob(t, harness.Alice, "--jail=debian")
	text, err := os.ReadFile(s.Path("/run/gojail/n1/jobs/" + job + "/debian"))
	require.NoError(t, err)
	record := strings.Fields(string(text))
	sshd := fmt.Sprint(s.Find("sshd: /usr/sbin/sshd")[0].Pid)
	for name, made := range map[string]struct{ owner, record string }{
		"reused pid":         {"5001", strings.Join([]string{record[0], sshd, record[2], record[3], record[4]}, " ")},
		"another version":    {"5001", strings.Join([]string{"1", record[1], record[2], record[3], record[4]}, " ")},
		"another owner":      {"5002", strings.Join(record, " ")},
		"another user's":     {"5001", strings.Join([]string{record[0], record[1], record[2], record[3], "5002"}, " ")},
		"nobody's":           {"", strings.Join(record, " ")},
		"damaged":            {"5001", "garbage"},
		"a jail that is not": {"5001", ""},
	} {
		dir := "/run/gojail/n1/jobs/777"
		require.Zero(t, s.Root("sh", "-ec", "mkdir "+dir+"; printf '%s' '"+made.owner+"' >"+dir+"/.uid; [ -z '"+made.owner+"' ] || echo >>"+dir+"/.uid; echo '"+made.record+"' >"+dir+"/debian").Code)
		r := s.runSSH(harness.Alice, "777", shells, where)
		require.Zero(t, s.Root("rm", "-r", dir).Code)
		require.NotContains(t, r.Stdout, "debian", name)
		if name == "another version" {
			requireRefused(t, "another version was installed on this node while your job 777 runs", r)
			continue
		}
		requireRefused(t, "SLURM_JOB_ID: job 777 has no sandbox of yours", r)
	}
}

// installHarasser installs the program testdata/harass.c on the node and in the jails.
func (s *site) installHarasser(t *testing.T) {
	t.Helper()
	for _, root := range []string{"/", "/srv/jails/debian/"} {
		out, err := exec.Command("gcc", "-static", "-O1", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", s.Path(root+"harass"), "testdata/harass.c").CombinedOutput()
		require.NoError(t, err, string(out))
	}
}

// TestHarassedSessions stops, traces and kills sessions at every moment, from outside and from inside the jail.
func TestHarassedSessions(t *testing.T) {
	s := sharedSite(t)
	job := s.startJob(t, harness.Alice, "--jail=debian")
	s.installHarasser(t)
	var wait sync.WaitGroup
	for _, script := range []string{"/harass stop $P 150 -c \"$W\"", "srun -Q --overlap --jobid=" + job + " --jail=debian /harass look 10", "for i in $(seq 60); do $P -c \"$W\"; done"} {
		wait.Go(func() {
			r := s.runAsAlice(script)
			assert.Zero(t, r.Code, "%s: %v", script, r)
			assert.NotContains(t, r.Stdout, "GRABBED", script)
			assert.NotContains(t, r.Stdout, "NODE", script)
			assert.Regexp(t, "debian|looked at some", r.Stdout, script)
		})
	}
	wait.Wait()
	requireOutput(t, "debian", s.runAsAlice("$P -c \"$W\""))
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("gojail-session")) == 0 }), "%v", s.Find("gojail-session"))
}

// TestSessionsWhileTheJobEnds requires that each session is in the job's sandbox or is refused, and that none remains.
func TestSessionsWhileTheJobEnds(t *testing.T) {
	s := sharedSite(t)
	for range 4 {
		job := s.startJob(t, harness.Alice, "--jail=debian")
		stop, done := make(chan bool), make(chan bool)
		for range 4 {
			go func() {
				for {
					select {
					case <-stop:
						done <- true
						return
					default:
					}
					r := s.runAsAlice("SLURM_JOB_ID=" + job + " $P -c \"$W; sleep 7003 </dev/null >/dev/null 2>&1 & exit 0\"")
					assert.Contains(t, []string{"debian\n", ""}, r.Stdout, r)
					if r.Stdout == "" {
						assert.Regexp(t, "^gojail: (SLURM_JOB_ID: )?(job|sandbox|cannot)|^$", r.Stderr, r)
					}
				}
			}()
		}
		s.endJob(t, job)
		close(stop)
		for range 4 {
			<-done
		}
		assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("sleep 7003")) == 0 }), "%v", s.Find("sleep 7003"))
	}
}

// TestFloodOfSessions requires that another user's step starts during a flood of sessions.
func TestFloodOfSessions(t *testing.T) {
	s := sharedSite(t)
	s.startJob(t, harness.Alice, "--jail=debian")
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			r := s.runAsAlice("for i in $(seq 25); do $P -c \"$W\" & done; wait")
			assert.Equal(t, strings.Repeat("debian\n", 25), r.Stdout, r)
		})
	}
	requireOutput(t, "debian", s.Run(harness.Bob, "srun", "-Q", "-wn1", "--jail=debian", "cat", "/etc/gojail-jail"))
	wait.Wait()
}

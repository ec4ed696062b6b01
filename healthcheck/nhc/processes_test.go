// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
)

// running is a process as the kernel shows it; root's unless uid is set. exe "" is a kernel thread.
type running struct {
	cmdline, comm, exe string
	uid                int
	state              string
}

// Processes of programs that set their title, or have another name than their file.
var (
	listener   = running{cmdline: "sshd: /usr/sbin/sshd -D [listener] 0 of 10-100 startups\x00\x00\x00", comm: "sshd", exe: "/usr/sbin/sshd"}
	oldSshd    = running{cmdline: "/usr/sbin/sshd\x00-D\x00", comm: "sshd", exe: "/usr/sbin/sshd"}
	monitor    = running{cmdline: "sshd: alice [priv]\x00", comm: "sshd", exe: "/usr/sbin/sshd"}
	session    = running{cmdline: "sshd: root@pts/0\x00", comm: "sshd", exe: "/usr/sbin/sshd"}
	accepted   = running{cmdline: "sshd: [accepted]\x00", comm: "sshd", exe: "/usr/sbin/sshd"}
	newSession = running{cmdline: "sshd-session: alice [priv]\x00", comm: "sshd-session", exe: "/usr/libexec/openssh/sshd-session"}
	upgraded   = running{cmdline: "/usr/sbin/sshd\x00-D\x00", comm: "sshd", exe: "/usr/sbin/sshd (deleted)"}
	master     = running{cmdline: "nginx: master process /usr/sbin/nginx -g daemon on;\x00", comm: "nginx", exe: "/usr/sbin/nginx"}
	worker     = running{cmdline: "nginx: worker process\x00", comm: "nginx", exe: "/usr/sbin/nginx", uid: 33}
	fpm        = running{cmdline: "php-fpm: master process (/etc/php-fpm.conf)\x00", comm: "php-fpm", exe: "/usr/sbin/php-fpm"}
	pool       = running{cmdline: "php-fpm: pool www\x00", comm: "php-fpm", exe: "/usr/sbin/php-fpm"}
	postgres   = running{cmdline: "postgres: 14/main: checkpointer \x00", comm: "postgres", exe: "/usr/lib/postgresql/14/bin/postgres", uid: 26}
	sendmail   = running{cmdline: "sendmail: accepting connections\x00", comm: "sendmail", exe: "/usr/sbin/sendmail.sendmail"}
	avahi      = running{cmdline: "avahi-daemon: running [n1.local]\x00", comm: "avahi-daemon", exe: "/usr/sbin/avahi-daemon", uid: 70}
	ntpd       = running{cmdline: "ntpd: [priv]\x00", comm: "ntpd", exe: "/usr/sbin/ntpd"}
	sdPAM      = running{cmdline: "(sd-pam)\x00", comm: "(sd-pam)", exe: "/usr/lib/systemd/systemd"}
	login      = running{cmdline: "-bash\x00", comm: "bash", exe: "/usr/bin/bash", uid: 1000}
	kthread    = running{comm: "kauditd"}
	zombie     = running{comm: "sshd", state: "Z"}
	journal    = running{cmdline: "/usr/lib/systemd/systemd-journald\x00", comm: "systemd-journal", exe: "/usr/lib/systemd/systemd-journald"}
	hidden     = running{cmdline: "[kworker/0:1]\x00", comm: "kworker/0:1", exe: "/tmp/xmrig", uid: 1000}
	erased     = running{comm: "xmrig", exe: "/tmp/xmrig", uid: 1000}
	tuned      = running{cmdline: "/usr/bin/python3\x00-Es\x00/usr/sbin/tuned\x00-l\x00-P\x00", comm: "tuned", exe: "/usr/bin/python3.9"}
	unit       = running{cmdline: "/usr/bin/python3\x00-W\x00ignore\x00/opt/site/agent.py\x00", comm: "python3", exe: "/usr/bin/python3.9"}
	module     = running{cmdline: "/usr/bin/python3\x00-m\x00gunicorn\x00app\x00", comm: "python3", exe: "/usr/bin/python3.9"}
	longScript = running{cmdline: "/bin/bash\x00/usr/bin/a-script-with-a-long-name\x00", comm: "a-script-with-a", exe: "/usr/bin/bash"}
	odd        = running{cmdline: "/opt/odd/run\x00/usr/bin/site-agent\x00", comm: "site-agent", exe: "/opt/odd/run"}
	oneLiner   = running{cmdline: "bash\x00-c\x00sshd\x00", comm: "bash", exe: "/usr/bin/bash"}
	cron       = running{cmdline: "/usr/sbin/cron\x00-f\x00", comm: "cron", exe: "/usr/sbin/cron"}
	cronJob    = running{cmdline: "/usr/sbin/CRON\x00-f\x00", comm: "cron", exe: "/usr/sbin/cron"}
	busybox    = running{cmdline: "crond\x00-f\x00", comm: "crond", exe: "/bin/busybox"}
	renamed    = running{cmdline: "slurm-node 7\x00", comm: "slurm-node", exe: "/usr/sbin/slurmd"}
	blankPath  = running{cmdline: "/opt/My App/bin/lmgrd\x00-c\x00x\x00", comm: "lmgrd", exe: "/opt/My App/bin/lmgrd"}
	editor     = running{cmdline: "vi\x00/etc/ssh/sshd_config\x00", comm: "vi", exe: "/usr/bin/vi"}
	ownPython  = running{cmdline: "./a.out\x00", comm: "a.out", exe: "/home/alice/python/a.out", uid: 1000}
)

// processTable has checks with their faults, "" none.
var processTable = []struct {
	processes []running
	check     string
	fault     string
}{
	// The service runs, under a title.
	{[]running{listener}, "check_ps_service -u root -S sshd", ""},
	{[]running{listener}, "check_ps_service -d sshd ssh", ""},
	{[]running{listener}, "check_ps_service -m '*/sshd' ssh", ""},
	{[]running{listener}, "check_ps_service -m '/^sshd$/' ssh", ""},
	{[]running{listener}, "check_ps_service -m '/\\\\/sshd$/' ssh", ""},
	{[]running{listener}, "check_ps_service -f -m '/^\\\\/usr\\\\/sbin\\\\/sshd -D/' ssh", ""},
	{[]running{listener}, "check_ps_service -f -m '*sshd*' ssh", ""},
	{[]running{listener}, "check_ps_daemon sshd root", ""},
	{[]running{listener}, "check_ps_daemon /usr/sbin/sshd root -D", ""},
	{[]running{listener}, "check_ps_service -u alice sshd", "sshd owned by alice is not running"},
	{[]running{oldSshd, session}, "check_ps_service -u root sshd", ""},
	{[]running{upgraded}, "check_ps_service -u root sshd", ""},
	{[]running{master, worker}, "check_ps_service nginx", ""},
	{[]running{master, worker}, "check_ps_service -u root nginx", ""},
	{[]running{fpm}, "check_ps_service php-fpm", ""},
	{[]running{postgres}, "check_ps_service postgres", ""},
	{[]running{sendmail}, "check_ps_service sendmail", ""},
	{[]running{avahi}, "check_ps_service avahi-daemon", ""},
	{[]running{ntpd}, "check_ps_service ntpd", ""},
	{[]running{renamed}, "check_ps_service slurmd", ""},
	{[]running{renamed}, "check_ps_daemon slurmd root", ""},
	{[]running{blankPath}, "check_ps_service lmgrd", ""},
	{[]running{journal}, "check_ps_service systemd-journald", ""},
	{[]running{tuned}, "check_ps_service tuned", ""},
	{[]running{tuned}, "check_ps_service -f -m '*/tuned*' tuned", ""},
	{[]running{unit}, "check_ps_service agent.py", ""},
	{[]running{module}, "check_ps_service gunicorn", ""},
	{[]running{longScript}, "check_ps_service a-script-with-a-long-name", ""},
	{[]running{odd}, "check_ps_service site-agent", ""},
	{[]running{busybox}, "check_ps_service crond", ""},
	{[]running{cron, cronJob}, "check_ps_service cron", ""},

	// The service does not run: what it has started may, and others with a name like it.
	{[]running{monitor, session, accepted, newSession}, "check_ps_service -u root sshd", "sshd owned by root is not running"},
	{[]running{session}, "check_ps_service -m '*/sshd' sshd", "sshd is not running"},
	{[]running{worker}, "check_ps_service nginx", "nginx is not running"},
	{[]running{pool}, "check_ps_service php-fpm", "php-fpm is not running"},
	{[]running{cronJob}, "check_ps_service cron", "cron is not running"},
	{[]running{sdPAM}, "check_ps_service systemd", "systemd is not running"},
	{[]running{kthread}, "check_ps_service auditd", "auditd is not running"},
	{[]running{kthread}, "check_ps_service kauditd", "kauditd is not running"},
	{[]running{zombie, login}, "check_ps_service sshd", "sshd is not running"},
	{[]running{zombie, login}, "check_ps_daemon sshd", "sshd is not running"},
	{[]running{oneLiner}, "check_ps_service sshd", "sshd is not running"},
	{[]running{editor}, "check_ps_service sshd", "sshd is not running"},
	{[]running{longScript}, "check_ps_service a-script-with-a", "a-script-with-a is not running"},
	{[]running{journal}, "check_ps_service systemd-journal", "systemd-journal is not running"},
	{[]running{tuned}, "check_ps_service -m '*/tuned' tuned", "tuned is not running"}, // -m: the program, without -f

	// A service that must not run, and runs.
	{[]running{listener}, "check_ps_service -k sshd", "sshd is running"},
	{[]running{listener}, "check_ps_service -s sshd", "sshd is running"},
	{[]running{listener}, "check_ps_service -E 'x' sshd", "sshd is running"},
	{[]running{session}, "check_ps_service -k sshd", "sshd is running"},
	{[]running{listener}, "check_ps_service -k -m '*/sshd' ssh", "ssh is running"},
	{[]running{worker}, "check_ps_service -k -u '!root' nginx", "nginx owned by !root is running"},
	{[]running{worker}, "check_ps_blacklist nginx '!root'", "nginx owned by !root is running"},
	{[]running{renamed}, "check_ps_service -k slurmd", "slurmd is running"},
	{[]running{renamed}, "check_ps_blacklist slurmd", "slurmd is running"},
	{[]running{hidden}, "check_ps_service -k xmrig", "xmrig is running"},
	{[]running{hidden}, "check_ps_blacklist xmrig", "xmrig is running"},
	{[]running{hidden}, "check_ps_blacklist /tmp/xmrig '!root'", "/tmp/xmrig owned by !root is running"},
	{[]running{erased}, "check_ps_blacklist xmrig '!root'", "xmrig owned by !root is running"},
	{[]running{erased}, "check_ps_service -k xmrig", "xmrig is running"},
	{[]running{unit}, "check_ps_service -k agent.py", "agent.py is running"},
	{[]running{tuned}, "check_ps_service -k tuned", "tuned is running"},
	{[]running{cronJob}, "check_ps_service -k cron", "cron is running"},
	{[]running{login}, "check_ps_service -k bash", "bash is running"},
	{[]running{listener}, "check_ps_service -k -m '!*nginx' other", "other is running"},

	// A service that must not run, and does not.
	{[]running{kthread}, "check_ps_service -k auditd", ""},
	{[]running{zombie, login}, "check_ps_service -k sshd", ""},
	{[]running{zombie, login}, "check_ps_blacklist sshd", ""},
	{[]running{newSession}, "check_ps_service -k sshd", ""},
	{[]running{oneLiner}, "check_ps_service -k sshd", ""},
	{[]running{editor}, "check_ps_service -k sshd", ""},
	{[]running{ownPython}, "check_ps_blacklist python '!root'", ""},
	{[]running{ownPython}, "check_ps_service -k -m '*python*' python", ""},
	{[]running{listener}, "check_ps_service -k -u '!root' sshd", ""},
	{[]running{listener}, "check_ps_service -k -m '!*sshd' other", ""},
}

func TestProcesses(t *testing.T) {
	nstest.NeedRoot(t)
	_, dir := node(t)
	for _, c := range processTable {
		s := &System{Proc: dir + "/proc", Etc: dir + "/etc", Now: time.Now}
		require.NoError(t, os.RemoveAll(s.Proc))
		for i, p := range c.processes {
			at := fmt.Sprintf("%s/proc/%d", dir, i+1)
			require.NoError(t, os.MkdirAll(at, 0o755))
			require.NoError(t, os.WriteFile(at+"/cmdline", []byte(p.cmdline), 0o644))
			require.NoError(t, os.WriteFile(at+"/comm", []byte(p.comm+"\n"), 0o644))
			state := p.state + "S"
			require.NoError(t, os.WriteFile(at+"/stat", []byte(fmt.Sprintf("%d (a ) b) %c 1 1", i+1, state[0])), 0o644))
			if p.exe != "" {
				require.NoError(t, os.Symlink(p.exe, at+"/exe"))
			}
			require.NoError(t, os.Chown(at, p.uid, 0))
		}
		lines := Parse("* || "+c.check, "n1")
		require.Len(t, lines, 1)
		require.Empty(t, lines[0].Problem, c.check)
		fault, err := lines[0].Check(t.Context(), s)
		require.NoError(t, err, c.check)
		assert.Equal(t, c.fault, fault, "%s with %q", c.check, c.processes[0].cmdline)
	}
}

// TestProcessesOfTheMachine looks for a program that shows a title, and for one whose file was replaced.
func TestProcessesOfTheMachine(t *testing.T) {
	nstest.NeedRoot(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "gojail-test-titled")
	text, err := os.ReadFile("/bin/cat")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o755))
	cmd := exec.Command(path)
	cmd.Args = []string{"other: master process", "-"}
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() {
		stdin.Close()
		assert.NoError(t, cmd.Wait())
	}()
	_, err = stdin.Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(stdout, make([]byte, 1)) // the program runs
	require.NoError(t, err)
	for range 2 {
		for check, want := range map[string]string{
			"check_ps_service gojail-test-titled":                                        "",
			"check_ps_service -k gojail-test-titled":                                     "gojail-test-titled is running",
			"check_ps_blacklist gojail-test-titled":                                      "gojail-test-titled is running",
			"check_ps_service -f -m '/^" + strings.ReplaceAll(path, "/", `\\/`) + "/' x": "",
		} {
			s := &System{Proc: "/proc", Etc: "/etc", Now: time.Now}
			fault, err := Parse("* || "+check, "n1")[0].Check(t.Context(), s)
			require.NoError(t, err)
			assert.Equal(t, want, fault, check)
		}
		require.NoError(t, os.RemoveAll(path))
	}
}

func FuzzDescribeProcess(f *testing.F) {
	for _, c := range processTable {
		for _, p := range c.processes {
			f.Add([]byte(p.cmdline), p.comm, p.exe)
		}
	}
	f.Fuzz(func(t *testing.T, cmdline []byte, comm, exe string) {
		p := describeProcess(cmdline, comm, exe)
		_ = p.first()
		for _, withPath := range []bool{false, true} {
			for _, line := range p.lines(withPath) {
				require.NotEmpty(t, line)
			}
		}
	})
}

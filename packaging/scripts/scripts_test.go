// SPDX-License-Identifier: Apache-2.0

// Package scripts tests the maintainer scripts of the packages. What dpkg and rpm do with them is in tests/packages.
package scripts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
)

// machine is a mount namespace with an empty /etc, /run and /var, in which commands of the node only note how they are called.
type machine struct {
	t     *testing.T
	dir   string
	begin string // what is there before the script, as a shell script
}

func newMachine(t *testing.T, begin string) *machine {
	nstest.NeedRoot(t)
	m := &machine{t: t, dir: t.TempDir(), begin: begin}
	m.addCommand("systemctl", `echo "systemctl $*" >>`+m.dir+"/calls")
	m.addCommand("gojail", "exit 0")
	return m
}

// addCommand puts a command in the place of the node's.
func (m *machine) addCommand(name, script string) {
	require.NoError(m.t, os.WriteFile(filepath.Join(m.dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

// run runs a script and then the shell script end, and returns the output of both, and of the calls of systemctl.
func (m *machine) run(end, name string, args ...string) (output, calls string, err error) {
	m.t.Helper()
	path := m.build(name)
	script := "set -e\nfor dir in /etc /run /var; do mount -t tmpfs tmpfs $dir; done\nmkdir -p /etc/default /etc/gojail /etc/ssh /etc/slurm/plugstack.conf.d /var/lib\n" +
		m.begin + "\ncode=0; sh " + path + ` "$@" || code=$?` + "\n" + end + "\nexit $code\n"
	cmd := exec.Command("unshare", append([]string{"--mount", "--propagation", "private", "sh", "-c", script, "sh"}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+m.dir+":"+os.Getenv("PATH"))
	said, err := cmd.CombinedOutput()
	called, _ := os.ReadFile(filepath.Join(m.dir, "calls"))
	os.Remove(filepath.Join(m.dir, "calls"))
	return string(said), string(called), err
}

// build writes a script to the machine as packaging/build does, and returns its path.
func (m *machine) build(name string) string {
	m.t.Helper()
	text, err := os.ReadFile(name) // not by its path: go test would take an old result for one that only another process reads
	require.NoError(m.t, err)
	common, err := os.ReadFile("sandboxes")
	require.NoError(m.t, err)
	path := filepath.Join(m.dir, name)
	require.NoError(m.t, os.WriteFile(path, []byte(strings.Replace(string(text), "# @SANDBOXES@\n", string(common), 1)), 0o644))
	return path
}

const withSystemd = "mkdir -p /run/systemd/system"

// TestUpgradeRestartsTheExporterOnly: systemd reads the units again, and nothing is restarted that steps hang on.
func TestUpgradeRestartsTheExporterOnly(t *testing.T) {
	const reload, restart = "systemctl daemon-reload\n", "systemctl try-restart gojail-exporter.service\n"
	for args, want := range map[string]string{
		"gojail.postinst configure": reload, "gojail.postinst configure 0.0.9-1": reload + restart, "gojail.postinst abort-upgrade 0.1.0-1": reload,
		"gojail.postinst 1": reload, "gojail.postinst 2": reload + restart,
		"gojail.postrm remove": reload, "gojail.postrm upgrade 0.2.0-1": "", "gojail.prerm upgrade 0.2.0-1": "", "gojail.prerm 1": "",
	} {
		words := strings.Fields(args)
		output, calls, err := newMachine(t, withSystemd).run("", words[0], words[1:]...)
		require.NoError(t, err, "%s: %s", args, output)
		assert.Equal(t, want, calls, args)
		assert.Empty(t, output, args)
		_, calls, err = newMachine(t, "").run("", words[0], words[1:]...)
		require.NoError(t, err, args)
		assert.Empty(t, calls, "%s: in an image that is being built", args)
	}
	m := newMachine(t, withSystemd)
	m.addCommand("systemctl", "exit 1")
	output, _, err := m.run("", "gojail.postinst", "configure", "0.0.9-1")
	assert.NoError(t, err, "systemd's error fails no upgrade: %s", output)
}

// TestUpgradeToAnotherContract: what docs/upgrades.md wants to be done before, apt does not: it says so where it matters, and goes on.
func TestUpgradeToAnotherContract(t *testing.T) {
	const state = "mkdir -p /run/gojail/jobs/17 /run/gojail/jobs/login-1000; printf 'gojail-site 13\nconfig 1\n' >/run/gojail/site\n"
	const said = "gojail: this version has contract 14, but jobs or sessions have sandboxes of contract 13 on this node: 17 login-1000\n" +
		"gojail: their further steps and sessions do not enter these sandboxes: drain the node, and end sessions, as \"Upgrade gojail\" in /usr/share/doc/gojail/docs/upgrades.md says\n"
	for _, test := range []struct{ begin, args, want string }{
		{state, "configure 0.0.9-1", said}, {state, "2", said}, {withSystemd + "\n" + state, "configure 0.0.9-1", said},
		{state + "mkdir /run/n; mv /run/gojail /run/n/n1; echo 'required /usr/lib/gojail/spank_gojail.so state=/run/n/%n' >/etc/slurm/plugstack.conf", "2", said},
		{state, "configure", ""}, {state, "1", ""}, {state, "abort-upgrade 0.0.9-1", ""}, {"", "configure 0.0.9-1", ""},
		{state + "rmdir /run/gojail/jobs/*", "configure 0.0.9-1", ""}, {state + "rm -r /run/gojail/jobs", "configure 0.0.9-1", ""}, {state + "rm /run/gojail/site", "2", ""},
		{state + "sed -i s/13/14/ /run/gojail/site", "2", ""},
	} {
		m := newMachine(t, test.begin)
		m.addCommand("gojail", `[ "$1" != version ] || echo "gojail 0.1.0, contract 14, go1.26.1"`)
		output, _, err := m.run("", "gojail.postinst", strings.Fields(test.args)...)
		assert.NoError(t, err, test)
		assert.Equal(t, test.want, output, test)
	}
}

// TestRemovalDisablesUnits: links to them would lead nowhere, in an image, too, where nothing runs that could be stopped.
func TestRemovalDisablesUnits(t *testing.T) {
	const disable = "systemctl disable gojail-nccl.timer\nsystemctl disable gojail-metrics.timer\nsystemctl disable gojail-exporter.service\nsystemctl disable gojail-vf.service\n"
	for _, how := range []string{"remove", "0"} {
		output, calls, err := newMachine(t, withSystemd).run("", "gojail.prerm", how)
		require.NoError(t, err, output)
		assert.Equal(t, strings.ReplaceAll(disable, "disable", "disable --now")+"systemctl stop gojail-nccl.service\nsystemctl stop gojail-metrics.service\n", calls)
		output, calls, err = newMachine(t, "").run("", "gojail.prerm", how)
		require.NoError(t, err, output)
		assert.Equal(t, disable, calls)
	}
	m := newMachine(t, withSystemd)
	m.addCommand("systemctl", "exit 1")
	output, _, err := m.run("", "gojail.prerm", "remove")
	assert.NoError(t, err, "systemd's error fails no removal: %s", output)
}

// TestRemovalTakesMetricsAlong: what nobody replaces any more would tell of ended jobs and of old verdicts for ever.
func TestRemovalTakesMetricsAlong(t *testing.T) {
	const begin = `cat >/etc/default/gojail-metrics <<'END'
GOJAIL_METRICS=--output=/var/textfiles/%n.prom --dcgm-job-mapping=/run/mapping
END
cat >/etc/gojail/health.toml <<'END'
# metrics = "/var/textfiles/commented.prom"
metrics = "/var/textfiles/health-%n.prom"
[nccl]
	metrics = '/var/textfiles/nccl-%n.prom' # of this machine
END
mkdir -p /var/textfiles /run/mapping /var/lib/gojail-metrics/node-exporter
cd /var/textfiles
for file in n1 ../lib/gojail-metrics/node-exporter/gojail-n1; do echo 'gojail_metrics_time_seconds{node="n1"} 1' >$file.prom; done
for file in health-n1 health-n2 nccl-n1 commented; do echo 'gojail_health_drained{node="n1"} 1' >$file.prom; done
echo 'other 1' >health-other.prom
echo 17 | tee /run/mapping/0 /run/mapping/12 /run/mapping/3.1 /run/mapping/0-notes >/run/mapping/notes
`
	const list = "find /var/textfiles /var/lib /run/mapping -type f | sort"
	for _, how := range []string{"remove", "0"} {
		output, _, err := newMachine(t, begin).run(list, "gojail.prerm", how)
		require.NoError(t, err, output)
		assert.Equal(t, []string{"/run/mapping/0-notes", "/run/mapping/notes", "/var/textfiles/commented.prom", "/var/textfiles/health-other.prom"}, strings.Fields(output), how)
	}
	output, _, err := newMachine(t, begin+"rm /run/mapping/*notes").run("[ ! -e /run/mapping ]", "gojail.prerm", "remove")
	assert.NoError(t, err, output)
	for _, how := range []string{"upgrade", "1"} {
		output, _, err := newMachine(t, begin).run(list, "gojail.prerm", how)
		require.NoError(t, err, output)
		assert.Len(t, strings.Fields(output), 12, "an upgrade leaves all")
	}
}

// TestRefusedRemoval: where users could not log in without gojail, the plugin stays where that can be known, and what has happened
// is said where it cannot.
func TestRefusedRemoval(t *testing.T) {
	const sessions = "echo 'ForceCommand /usr/lib/gojail/gojail-session' >/etc/ssh/sshd_config\n"
	const plugin = "touch /etc/slurm/plugstack.conf.d/gojail.conf\n"
	refusal := "gojail: not removed: users could not log in without /usr/lib/gojail/gojail-session, which is named in /etc/ssh/sshd_config\n" +
		"gojail: take it out there first: \"Give sessions back to the node\" in /usr/share/doc/gojail/docs/operations.md\n"
	gone := "gojail: the plugin is not installed (any more): where it was removed now, steps start outside of jails, or none does. To go back, install gojail-slurm again\n"
	if _, err := os.Stat("/usr/lib/gojail/spank_gojail.so"); err == nil {
		gone = ""
	}
	output, _, err := newMachine(t, sessions).run("", "gojail.prerm", "remove")
	assert.Error(t, err)
	assert.Equal(t, refusal+gone, output)
	output, _, err = newMachine(t, "").run("", "gojail.prerm", "check")
	assert.NoError(t, err)
	assert.Empty(t, output)

	prerm := newMachine(t, "").build("gojail.prerm")
	for want, goes := range map[string]bool{"install": true, "deinstall": false, "purge": false} {
		m := newMachine(t, sessions+plugin)
		m.addCommand("dpkg-query", `case "$*" in *--control-show*) cat `+prerm+";; *) echo "+want+";; esac")
		output, _, err := m.run("ls /etc/slurm/plugstack.conf.d", "gojail-slurm.prerm", "remove")
		if goes {
			assert.NoError(t, err, want)
			assert.Equal(t, "gojail.conf.removed\n", output, want)
			continue
		}
		assert.Error(t, err, want)
		assert.Equal(t, refusal+gone+"gojail.conf\n", output, want)
	}
	m := newMachine(t, plugin)
	m.addCommand("dpkg-query", `case "$*" in *--control-show*) cat `+prerm+";; *) echo purge;; esac")
	output, _, err = m.run("ls /etc/slurm/plugstack.conf.d", "gojail-slurm.prerm", "remove")
	assert.NoError(t, err)
	assert.Equal(t, "gojail.conf.removed\n", output)
}

// TestRefusalKnowsUsersOfDirectories: getent passwd does not list them (sssd's enumerate is off), but finds each who is asked for.
func TestRefusalKnowsUsersOfDirectories(t *testing.T) {
	const refusal = "gojail: not removed: users could not log in without /usr/lib/gojail/gojail-session, which is named in accounts (getent passwd)\n"
	const wtmp = `printf 'root     pts/0   192.0.2.1  Thu Nov 26 09:00 still logged in\n%s  pts/1\nreboot   system boot\n\nwtmp begins\n'`
	for _, test := range []struct {
		last, shell string
		refused     bool
	}{
		{fmt.Sprintf(wtmp, "alice-with-a-long-name"), "/usr/lib/gojail/gojail-session", true}, {fmt.Sprintf(wtmp, "alice-with-a-long-name"), "/bin/bash", false},
		{fmt.Sprintf(wtmp, "bob"), "/usr/lib/gojail/gojail-session", false}, {"exit 127", "/usr/lib/gojail/gojail-session", false},
	} {
		m := newMachine(t, "")
		m.addCommand("last", test.last)
		m.addCommand("getent", `shift; for key in "$@"; do [ "$key" != alice-with-a-long-name ] || echo "$key:x:5001:5001::/home/a:`+test.shell+`"; done; exit 2`)
		output, _, err := m.run("", "gojail.prerm", "remove")
		assert.Equal(t, test.refused, err != nil, "%+v: %s", test, output)
		assert.Equal(t, test.refused, strings.HasPrefix(output, refusal), "%+v: %s", test, output)
	}
	m := newMachine(t, "") // by a process
	m.addCommand("getent", `shift; for key in "$@"; do [ "$key" != `+fmt.Sprint(os.Getuid())+` ] || echo "alice:x:$key:5001::/home/a:/usr/lib/gojail/gojail-session"; done`)
	output, _, err := m.run("", "gojail.prerm", "0")
	assert.Error(t, err)
	assert.Contains(t, output, refusal)
}

// TestRemovalWaitsForSandboxes: jobs that run would lose their jails with the plugin, and the end of their sandboxes with gojail.
func TestRemovalWaitsForSandboxes(t *testing.T) {
	const end = "gojail: end them first, \"Remove gojail\" in /usr/share/doc/gojail/docs/operations.md; \"gojail sweep\" or a reboot removes what is left of jobs that have ended\n"
	const drain = "gojail: drain the node first; \"gojail sweep\" or a reboot removes what is left of jobs that have ended\n"
	for begin, running := range map[string]string{
		"": "", "mkdir -p /run/gojail/jobs": "", "mkdir -p /run/gojail/jobs/17 /run/gojail/jobs/login-1000": "17 login-1000",
		"mkdir -p /run/gojail/jobs/login-1000": "login-1000",
		"mkdir -p /run/other/n1/jobs/17; echo 'required /usr/lib/gojail/spank_gojail.so config=/x state=/run/other/%n' >/etc/slurm/plugstack.conf": "17",
		"mkdir -p /run/other/jobs/17; echo 'required /usr/lib/gojail/spank_gojail.so state=/run/other' >/etc/slurm/plugstack.conf.d/gojail.conf":   "17",
		"mkdir -p /run/other/jobs/17; echo '#required /usr/lib/gojail/spank_gojail.so state=/run/other' >/etc/slurm/plugstack.conf":                "",
	} {
		for args, want := range map[string]string{
			"gojail.prerm remove": "gojail: not removed: jobs or sessions have sandboxes on this node: %\n" + end, "gojail.prerm 0": "gojail: not removed: jobs or sessions have sandboxes on this node: %\n" + end,
			"gojail.prerm upgrade 0.2.0-1": "", "gojail.prerm 1": "", "gojail-slurm.prerm upgrade 0.2.0-1": "", "gojail-slurm.prerm 1": "",
			"gojail-slurm.prerm remove": "gojail: the plugin is not removed: jobs have sandboxes on this node: %\n" + drain, "gojail-slurm.prerm 0": "gojail: the plugin is not removed: jobs have sandboxes on this node: %\n" + drain,
		} {
			named := running
			if strings.HasPrefix(args, "gojail-slurm") {
				named = strings.TrimSpace(strings.ReplaceAll(named, "login-1000", ""))
			}
			if named == "" {
				want = ""
			}
			m := newMachine(t, begin)
			m.addCommand("dpkg-query", "exit 1")
			words := strings.Fields(args)
			output, _, err := m.run("", words[0], words[1:]...)
			assert.Equal(t, want == "", err == nil, "%s: %s: %s", begin, args, output)
			assert.Equal(t, strings.ReplaceAll(want, "%", named), output, "%s: %s", begin, args)
		}
	}
}

// TestPurge: what gojail wrote goes, what users wrote stays, and so does all that a mount or a running job has there.
func TestPurge(t *testing.T) {
	const dir = "gojail: /var/lib/gojail is left: "
	const users = "it has files of users (of the directories \"local\" in gojail.toml), or others that gojail did not write\n"
	const written = `for scratch in /var/lib/gojail /var/lib/gojail/n1; do
	mkdir -p $scratch/jobs/.trash/17/tmp $scratch/ufm $scratch/local/jobs/var/tmp
	touch $scratch/jobs/.trash/17/tmp/file $scratch/ufm/call
done
mkdir /var/lib/gojail/health
touch /var/lib/gojail/health/state.json
mkdir -p /etc/modprobe.d
touch /etc/modprobe.d/gojail-rdma.conf
`
	const list = "[ ! -e /etc/modprobe.d/gojail-rdma.conf ]; [ ! -e /etc/gojail ]; find /var/lib/gojail -type f 2>/dev/null | sort; [ ! -L /var/lib/gojail ] || echo link"
	const all = "/var/lib/gojail/health/state.json\n/var/lib/gojail/jobs/.trash/17/tmp/file\n/var/lib/gojail/n1/jobs/.trash/17/tmp/file\n/var/lib/gojail/n1/ufm/call\n/var/lib/gojail/ufm/call\n"
	for name, test := range map[string]struct{ begin, end, want string }{
		"nothing":     {"", "", ""},
		"no jobs":     {written, "[ ! -e /var/lib/gojail ]", ""},
		"local data":  {written + "touch /var/lib/gojail/local/jobs/var/tmp/precious", "", dir + users + "/var/lib/gojail/local/jobs/var/tmp/precious\n"},
		"with %n":     {written + "touch /var/lib/gojail/n1/local/jobs/precious", "[ ! -e /var/lib/gojail/local ]", dir + users + "/var/lib/gojail/n1/local/jobs/precious\n"},
		"own mount":   {"mkdir /var/lib/gojail; mount -t tmpfs tmpfs /var/lib/gojail\n" + written, "", dir + "it is empty, and a mount point\n"},
		"mount below": {written + "mount -t tmpfs tmpfs /var/lib/gojail/n1", "umount /var/lib/gojail/n1", dir + "/var/lib/gojail/n1 is mounted\n" + all},
		"bind mount below": {written + "mkdir /var/lib/gojail/jobs/17 /var/site; touch /var/site/file; mount --bind /var/site /var/lib/gojail/jobs/17",
			"umount /var/lib/gojail/jobs/17; [ -e /var/site/file ]", dir + "/var/lib/gojail/jobs/17 is mounted\n" + all},
		"a job": {written + "mkdir -p /run/gojail/jobs/17", "", dir + "jobs or sessions that run here have their files below it: 17\n" +
			"gojail: /run/gojail is left until the next boot: jobs or sessions run, or something is mounted there\n" + all},
		"records": {"mkdir -p /run/gojail/jobs; touch /run/gojail/site", "[ ! -e /run/gojail ]", ""},
		"a mount among the records": {"mkdir -p /run/gojail/x /var/site; touch /var/site/file; mount --bind /var/site /run/gojail/x", "umount /run/gojail/x; [ -e /var/site/file ]",
			"gojail: /run/gojail is left until the next boot: jobs or sessions run, or something is mounted there\n"},
		"no /proc": {written + "mount -t tmpfs tmpfs /proc", "umount /proc", "cut: /proc/self/mountinfo: No such file or directory\n" + dir +
			"what is mounted below it cannot be read in /proc/self/mountinfo\n" + all},
		"a symbolic link": {"mkdir /var/site; touch /var/site/file; mkdir -p /etc/modprobe.d; ln -s /var/site /var/lib/gojail", "", dir + "it is a symbolic link\nlink\n"},
	} {
		output, _, err := newMachine(t, test.begin).run(test.end+"\n"+list, "gojail.postrm", "purge")
		assert.NoError(t, err, "%s: %s", name, output)
		assert.Equal(t, test.want, output, name)
	}
}

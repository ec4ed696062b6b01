// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// processes prints the pid and the command of all that a task can see.
const processes = `for p in /proc/[0-9]*; do read -r c <$p/comm 2>/dev/null && echo "${p#/proc/} $c"; done`

// TestProcessesAreTheJobs: one PID namespace for all steps of a job, whatever their jail, and no other process in it.
func TestProcessesAreTheJobs(t *testing.T) {
	c := sharedCluster(t)
	_, id := allocate(t, c)
	step := func(args ...string) harness.Result {
		return c.Run(harness.Alice, append([]string{"srun", "--overlap", "--jobid=" + id}, args...)...)
	}
	sleeper := make(chan harness.Result)
	go func() { sleeper <- step("--jail=debian", "sh", "-c", "exec sleep 600") }()
	seen := ""
	ok := harness.Poll(harness.Timeout, func() bool {
		seen = step("--jail=debian", "sh", "-c", processes).Stdout
		return strings.Contains(seen, "sleep")
	})
	require.True(t, ok, seen)
	for line := range strings.Lines(seen) {
		pid, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		assert.Contains(t, []string{"sh", "sleep"}, name, "of the job alone: %s", seen)
		number, _ := strconv.Atoi(pid)
		assert.Greater(t, number, 1, "the holder is root's and hidden")
	}
	other := step("--jail=other", "sh", "-c", processes).Stdout
	assert.Contains(t, other, "sleep", "the job's other jail shows the same processes")
	requireOutput(t, "", step("--jail=other", "sh", "-c", `for p in /proc/[0-9]*; do read -r c <$p/comm && [ $c = sleep ] && kill ${p#/proc/}; done 2>/dev/null; true`))
	assert.Equal(t, 143, (<-sleeper).Code, "a signal from one step reaches the other")
}

// TestNothingOutlivesTheJob: what left its session, its stdio and its parent is gone with the job.
func TestNothingOutlivesTheJob(t *testing.T) {
	c := sharedCluster(t)
	step, id := allocate(t, c)
	removeFromJail(t, c, "daemon")
	requireOutput(t, "", step(`(setsid sh -c 'echo up >~/daemon; exec sleep 31415' </dev/null >/dev/null 2>&1 &) ; until [ -s ~/daemon ]; do sleep 0.05; done`))
	c.Run(harness.Alice, "scancel", id)
	require.True(t, c.WaitIdle())
	gone := harness.Poll(harness.Timeout, func() bool { return len(c.Find("sleep 31415")) == 0 })
	assert.True(t, gone, "%v", c.Find("sleep 31415"))
}

// TestOrphansAreReaped: process 1 of the job's namespace leaves no zombies.
func TestOrphansAreReaped(t *testing.T) {
	c := sharedCluster(t)
	r := c.Run(harness.Alice, "srun", "--jail=debian", "-wn1", "sh", "-c",
		`for i in $(seq 50); do (sleep 0.01 &) ; done; sleep 0.5; grep -l '^State:.*zombie' /proc/[0-9]*/status; true`)
	requireOutput(t, "", r)
}

// TestIPCIsTheJobs: System V and POSIX objects of one job are another's no more than its processes are.
func TestIPCIsTheJobs(t *testing.T) {
	c := sharedCluster(t)
	step, id := allocate(t, c)
	list := `tail -n +2 /proc/sysvipc/shm | wc -l; ls /dev/mqueue`
	requireOutput(t, "", step("ipcmk -M 4096 >/dev/null && touch /dev/mqueue/q"))
	requireOutput(t, "1\nq", step(list))
	requireOutput(t, "0", c.Run(harness.Alice, "srun", "--jail=debian", "-wn1", "sh", "-c", list))
	requireOutput(t, "1\nq", c.Run(harness.Alice, "srun", "--jobid="+id, "--jail=other", "sh", "-c", list))
}

// TestHostnameIsTheNodes, and a change of it stays in the job.
func TestHostnameIsTheNodes(t *testing.T) {
	c := sharedCluster(t)
	ask := func(jail string, command ...string) string {
		r := c.Run(harness.Alice, append([]string{"srun", "--jail=" + jail, "-wn1"}, command...)...)
		require.Zero(t, r.Code, r)
		return r.Stdout
	}
	assert.Equal(t, ask("none", "hostname"), ask("debian", "hostname"))
	assert.NotEqual(t, ask("none", "readlink", "/proc/self/ns/uts"), ask("debian", "readlink", "/proc/self/ns/uts"))
}

const status = `grep -E '^(CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\t\n' '  '`

// TestTasksGiveUpPrivileges, users' and root's, unless the jail says otherwise.
func TestTasksGiveUpPrivileges(t *testing.T) {
	c := sharedCluster(t)
	for _, user := range []string{harness.Alice, "root"} {
		requireOutput(t, "CapBnd: 00000000a00425fb NoNewPrivs: 1 Seccomp: 2", c.Run(user, "srun", "--jail=debian", "-wn1", "sh", "-c", status))
		mounts := c.Run(user, "srun", "--jail=debian", "-wn1", "unshare", "-m", "true")
		assert.Contains(t, mounts.Stderr, "Operation not permitted", mounts)
	}
	all := "[jail.debian]\ncapabilities = [\"ALL\"]\nno_new_privs = false\nseccomp = \"none\"\nnamespaces = []\nhidepid = false\n"
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", all, 1))
	free := c.Run("root", "srun", "--jail=debian", "-wn1", "sh", "-c", status+"; "+processes).Stdout
	assert.Contains(t, free, " NoNewPrivs: 0 Seccomp: 0")
	assert.NotContains(t, free, "CapBnd: 00000000a00425fb")
	assert.Contains(t, free, "slurmstepd", "the node's processes")
	requireOutput(t, "yes", c.Run("root", "srun", "--jail=debian", "-wn1", "unshare", "-m", "echo", "yes"))
	own := "[jail.debian]\ncapabilities = [\"CAP_KILL\"]\n"
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", own, 1))
	requireOutput(t, "CapBnd: 0000000000000020 NoNewPrivs: 1 Seccomp: 2", c.Run(harness.Alice, "srun", "--jail=debian", "-wn1", "sh", "-c", status))
}

// TestProfileOfTheSite: a JSON profile as other runtimes have it; one that is damaged lets nothing run.
func TestProfileOfTheSite(t *testing.T) {
	c := sharedCluster(t)
	path := c.Path("/etc/gojail/seccomp.json")
	t.Cleanup(func() { os.Remove(path) })
	profile := `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95}]}`
	require.NoError(t, os.WriteFile(path, []byte(profile), 0o644))
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\nseccomp = \"/etc/gojail/seccomp.json\"\n", 1))
	mkdir := c.Run(harness.Alice, "srun", "--jail=debian", "-wn1", "mkdir", "/tmp/x")
	assert.Contains(t, mkdir.Stderr, "Operation not supported", mkdir)
	require.NoError(t, os.WriteFile(path, []byte(`{"defaultAction": "SCMP_ACT_MAYBE"`), 0o644))
	c.Root("gojail", "--state=/run/gojail/n1", "reload")
	requireRefused(t, "/etc/gojail/seccomp.json", c.Run(harness.Alice, "srun", "--jail=debian", "-wn1", "true"))
	require.NoError(t, os.WriteFile(path, []byte(profile), 0o644))
	require.NoError(t, os.Chown(path, 5001, 5001))
	requireRefused(t, "/etc/gojail/seccomp.json", c.Run(harness.Alice, "srun", "--jail=debian", "-wn1", "true"))
}

// rooted is a configuration that lets users be root in the jail debian.
var rooted = strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"self\"]\n", 1)

// TestRootInTheJail: the user's own files belong to root there, all others to nobody, and on the node nothing changes.
func TestRootInTheJail(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, rooted)
	removeFromJail(t, c, "mine")
	run := func(args ...string) harness.Result {
		return c.Run(harness.Alice, append([]string{"srun", "-wn1", "--jail=debian", "--jail-root"}, args...)...)
	}
	requireOutput(t, "0:0 1 4294967295\nroot", run("sh", "-c", `echo $(id -u):$(id -g) $(tr -s ' ' '\n' </proc/self/uid_map | tail -1) 4294967295; touch ~/mine; stat -c %U ~/mine`))
	st, err := os.Stat(c.Path(jailHome + "mine"))
	require.NoError(t, err)
	assert.EqualValues(t, 5001, st.Sys().(*syscall.Stat_t).Uid, "the file is the user's on disk")
	for what, script := range map[string]string{
		"another's file": "cat /home/bob/secret", "the root's file": "cat /etc/shadow", "a mount": "mount -t tmpfs none /mnt",
		"the host's name": "hostname x", "a device": "mknod /tmp/null c 1 3", "a group less": `perl -e '$) = "0 0"; exit($! ? 1 : 0)'`,
		"a kernel setting": "echo x >/proc/sys/kernel/hostname",
	} {
		writeOnNode(t, c, "/srv/jails/debian/home/bob/secret", "x")
		require.NoError(t, os.Chmod(c.Path("/srv/jails/debian/home/bob/secret"), 0o600))
		require.NoError(t, os.Chown(c.Path("/srv/jails/debian/home/bob/secret"), 5002, 5002))
		r := run("sh", "-c", script)
		assert.NotZero(t, r.Code, "%s: %v", what, r)
	}
	requireOutput(t, "CapBnd: 00000000a00425fb NoNewPrivs: 1 Seccomp: 2", run("sh", "-c", status))
	requireOutput(t, "same", run("sh", "-c", `[ $(readlink /proc/self/ns/user) != $(readlink /proc/1/ns/user 2>/dev/null || echo none) ] && echo same`))
}

// TestTasksOfARootShareTheirNamespace: one rank may look at another's memory, as MPI does.
func TestTasksOfARootShareTheirNamespace(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, rooted)
	r := c.Run(harness.Alice, "srun", "-wn1", "-n2", "-O", "--jail=debian", "--jail-root=self", "readlink", "/proc/self/ns/user")
	require.Zero(t, r.Code, r)
	lines := strings.Fields(r.Stdout)
	require.Len(t, lines, 2)
	assert.Equal(t, lines[0], lines[1])
}

func TestJailRootIsRefused(t *testing.T) {
	c := sharedCluster(t)
	run := func(option string, jail string) harness.Result {
		return c.Run(harness.Alice, "srun", "-wn1", "--jail="+jail, option, "id", "-u")
	}
	requireRefused(t, `--jail-root: jail "debian" does not allow it`, run("--jail-root", "debian"))
	requireRefused(t, "--jail-root needs a jail", run("--jail-root=self", "none"))
	bad := run("--jail-root=wheel", "debian")
	assert.Contains(t, bad.Stderr, "--jail-root=wheel is not a mode; write --jail-root alone, or --jail-root=self, =range or =none", bad)
	configure(t, c, rooted)
	requireRefused(t, `--jail-root=range: jail "debian" allows only self`, run("--jail-root=range", "debian"))
	requireOutput(t, "5001", run("--jail-root=none", "debian"))
	job := c.Batch(harness.Alice, "id -u; srun --jail-root id -u", "--jail=debian")
	assert.Equal(t, "COMPLETED 5001\n0\n", job.State+" "+job.Output, job)
}

// TestRootOfARange: who is root there can install into the jail, whose files are root's on disk, and of
// the data only what is the user's own.
func TestRootOfARange(t *testing.T) {
	c := sharedCluster(t)
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"range\"]\n", 1))
	run := func(args ...string) harness.Result {
		return c.Run(harness.Alice, append([]string{"srun", "-wn1", "--jail=debian", "--jail-root"}, args...)...)
	}
	for _, path := range []string{"/etc/subuid", "/etc/subgid"} {
		keep := readFile(c, path)
		require.NoError(t, os.WriteFile(c.Path(path), nil, 0o644))
		t.Cleanup(func() { os.WriteFile(c.Path(path), []byte(keep), 0o644) })
	}
	requireRefused(t, "ask your administrator for a line such as alice:100000:65536", run("true"))
	for _, path := range []string{"/etc/subuid", "/etc/subgid"} {
		require.NoError(t, os.WriteFile(c.Path(path), []byte("alice:300000:65536\n"), 0o644))
	}
	requireRefused(t, "chmod 700 /srv", run("true"))
	r := c.Root("chmod", "700", "/srv/jails")
	require.Zero(t, r.Code, r)
	t.Cleanup(func() { c.Root("chmod", "755", "/srv/jails") })
	removeFromJail(t, c, "mine")
	writeOnNode(t, c, "/srv/jails/debian/home/bob/secret", "x")
	require.NoError(t, os.Chown(c.Path("/srv/jails/debian/home/bob/secret"), 5002, 5002))
	require.NoError(t, os.Chmod(c.Path("/srv/jails/debian/home/bob/secret"), 0o600))
	script := `set -e; id -u; touch /usr/local/bin/tool; chown 7:8 /usr/local/bin/tool; chmod 4755 /usr/local/bin/tool
stat -c '%u:%g %a' /usr/local/bin/tool; touch ~/mine; stat -c %u:%g ~/mine; stat -c %u /etc/passwd /home/bob; stat -c %u /tmp`
	t.Cleanup(func() { os.Remove(c.Path("/srv/jails/debian/usr/local/bin/tool")) })
	requireOutput(t, "0\n7:8 4755\n0:0\n0\n65534\n65534", run("sh", "-c", script))
	owner := func(path string) uint32 {
		st, err := os.Stat(c.Path(path))
		require.NoError(t, err)
		return st.Sys().(*syscall.Stat_t).Uid
	}
	assert.EqualValues(t, 7, owner("/srv/jails/debian/usr/local/bin/tool"), "right on disk")
	assert.EqualValues(t, 5001, owner(jailHome+"mine"))
	for what, script := range map[string]string{
		"another's file": "cat /home/bob/secret", "another's directory": "touch /home/bob/x", "a device": "mknod /usr/local/null c 1 3",
		"a mount": "mount -t tmpfs none /mnt", "the node's settings": "echo x >/proc/sys/kernel/hostname",
	} {
		r := run("sh", "-c", script)
		assert.NotZero(t, r.Code, "%s: %v", what, r)
	}
	requireOutput(t, "0 alice", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-root", "--jail-mount=/data/alice:/mnt", "sh", "-c",
		`echo $(stat -c %u /mnt) alice; touch /mnt/x; rm /mnt/x`))
}

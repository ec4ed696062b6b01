// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary be the gojail command, which is to be a process of its own, and programs of a jail.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "push":
		pushInput()
		return
	case "ioctls":
		printRefusedCommands()
		return
	case "dial":
		dialSocket(os.Args[1])
		return
	}
	if os.Getenv("GOJAIL_TEST_COMMAND") != "" {
		os.Exit(Execute())
	}
	os.Exit(m.Run())
}

func (s *testSite) command(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append(s.flags, args...)...)
	cmd.Env = append(os.Environ(), "GOJAIL_TEST_COMMAND=1")
	return cmd
}

// prepareSandboxes makes the site ready to build sandboxes; the end of the test removes what they leave.
func (s *testSite) prepareSandboxes(t *testing.T) *testSite {
	t.Helper()
	if _, err := os.Stat("../../build/lib/gojail/gojail-launcher"); err != nil {
		t.Skip("needs build/lib/gojail: run make first")
	}
	_, err := s.gojail("init", "tiny")
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, cleanup := range []string{"sweep", "reload"} { // holders, then the zygote
			_, err := s.gojail(cleanup)
			assert.NoError(t, err)
		}
	})
	return s
}

func TestRun(t *testing.T) {
	s := newSite(t).prepareSandboxes(t)
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"run", "tiny", "--jail-mount=/usr/lib:/data:ro", "--", "sh", "-c", "test -e /data/os-release && touch /data/x"}, 1, "Read-only file system"}, // the first: no template is there
		{[]string{"run", "tiny", "--", "sh", "-c", "ls /; exit 7"}, 7, "data\ndev\netc\n"},
		{[]string{"run", "tiny", "--", "sh", "-c", "kill -TERM $$"}, 143, ""},
		{[]string{"run", "tiny", "-u", "nobody", "--", "sh", "-c", "id -u; pwd; touch /tmp/x && ls /tmp"}, 0, "65534\n/\nx\n"},
		{[]string{"run", "tiny", "--", "ls", "/tmp"}, 0, ""},
		{[]string{"run", "tiny", "--", "ls", "/proc/self/fd"}, 0, "0\n1\n2\n3\n"},
		{[]string{"run", "tiny", "--", "env"}, 0, "HOME=/\n"},
		{[]string{"run", "tiny", "--jail-mount=/etc:/data:ro", "--", "ls"}, 1, "/etc may not be mounted in jail tiny"},
		{[]string{"run", "tiny", "--", "no-such-command"}, 1, "gojail: no-such-command: cannot be run in the jail"},
	} {
		cmd := s.command(test.args...)
		out, _ := cmd.CombinedOutput()
		assert.Equal(t, test.code, cmd.ProcessState.ExitCode(), "%v: %s", test.args, out)
		assert.Contains(t, string(out), test.want, test.args)
		assert.NotContains(t, string(out), "GOJAIL_TEST", "a clean environment")
	}
	for _, dir := range []string{"state-n1/jobs", "scratch/jobs"} {
		entries, err := os.ReadDir(filepath.Join(s.dir, dir))
		require.NoError(t, err)
		entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "spare.") }) // for later jobs
		assert.Empty(t, entries, "nothing is left in %s", dir)
	}
}

// TestMountsOfAJobStayInIt: on a node with systemd every mount is shared, and what
// root mounts in the jail must not appear on the node.
func TestMountsOfAJobStayInIt(t *testing.T) {
	s := newSite(t).prepareSandboxes(t)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := s.command("run", "tiny", "--jail-mount=/usr/lib:/data", "--", "cat", "/proc/self/mountinfo")
	cmd.Path, err = exec.LookPath("unshare")
	require.NoError(t, err)
	cmd.Args = append([]string{"unshare", "--mount", "--propagation=shared", self}, cmd.Args[1:]...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), " /tmp ")
	assert.NotContains(t, string(out), " shared:")
	assert.NotContains(t, string(out), " master:")
}

// commandOf is a command of a process that descends from a login with that uid, as sudo(8) leaves it.
func (s *testSite) commandOf(t *testing.T, uid int, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := s.command(args...)
	login := []string{"sh", "-c", fmt.Sprintf(`echo %d >/proc/self/loginuid && exec "$@"`, uid), "sh", self}
	cmd.Path, cmd.Args = "/bin/sh", append(login, cmd.Args[1:]...)
	return cmd
}

func skipWithoutLoginUID(t *testing.T) {
	t.Helper()
	if text, err := os.ReadFile("/proc/self/loginuid"); err != nil || string(text) != "4294967295" {
		t.Skip("needs a kernel with audit, and no login before the test: ", string(text))
	}
}

// TestRunAsTheCaller: the command runs as the person who logged in, as root of the sandbox with that person's rights, or as nobody.
func TestRunAsTheCaller(t *testing.T) {
	skipWithoutLoginUID(t)
	u, err := user.Lookup("mail")
	require.NoError(t, err)
	uid, err := strconv.Atoi(u.Uid)
	require.NoError(t, err)
	s := newSite(t).prepareSandboxes(t)
	const look = "echo $(id -u) $(cat /proc/self/uid_map) $USER; touch /tmp/x; grep -o 'NoNewPrivs.*\\|Groups.*' /proc/self/status"
	for _, row := range []struct {
		login      int // -1: none
		name, want string
	}{
		{-1, "", "0 0 65534 1 root\n"},
		{0, "", "0 0 65534 1 root\n"},
		{0, "root", "0 0 65534 1 root\n"},
		{0, "nobody", "65534 0 0 4294967295 nobody\n"},
		{uid, "", u.Uid + " 0 0 4294967295 mail\n"},
		{uid, "mail", u.Uid + " 0 0 4294967295 mail\n"},
		{uid, u.Uid, u.Uid + " 0 0 4294967295 mail\n"},
		{uid, "root", "0 0 " + u.Uid + " 1 root\n"},
		{uid, "0", "0 0 " + u.Uid + " 1 root\n"},
		{uid, "65534", "65534 0 0 4294967295 nobody\n"},
	} {
		args := []string{"run", "tiny", "-u", row.name, "--", "sh", "-c", look}
		cmd := s.command(args...)
		if row.login >= 0 {
			cmd = s.commandOf(t, row.login, args...)
		}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		assert.True(t, strings.HasPrefix(string(out), row.want), "%v: %s", row, out)
		assert.Contains(t, string(out), "NoNewPrivs:\t1\n")
	}
	out, err := s.commandOf(t, uid, "run", "tiny", "-u", "daemon", "--", "id").CombinedOutput()
	assert.Error(t, err)
	assert.Equal(t, "gojail: -u takes root, nobody, or the person who logged in: the programs of a jail get no identity of user daemon from root\n", string(out))
	out, err = s.commandOf(t, 1<<30, "run", "tiny", "--", "id").CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), "cannot find the account of uid 1073741824 on this node, who logged in here; give -u nobody")
}

// A home that is closed to the user, as root's is on storage that squashes root, does not keep the command from running.
func TestRunWithAClosedHome(t *testing.T) {
	skipWithoutLoginUID(t)
	u, err := user.Lookup("mail")
	if err != nil || u.HomeDir != "/var/mail" || u.Uid != "8" {
		t.Skip("needs the user mail with the home /var/mail, as Debian has it")
	}
	s := newSite(t).prepareSandboxes(t)
	require.NoError(t, os.MkdirAll(filepath.Join(s.root, u.HomeDir), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(s.root, u.HomeDir), 0o700))
	out, err := s.commandOf(t, 8, "run", "tiny", "--", "sh", "-c", "pwd; echo $HOME").CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "gojail: the home directory /var/mail cannot be entered as user mail: Permission denied; starting in /\n/\n/\n", string(out))
	require.NoError(t, os.Chmod(filepath.Join(s.root, u.HomeDir), 0o755))
	out, err = s.commandOf(t, 8, "run", "tiny", "--", "sh", "-c", "pwd; echo $HOME").CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "/var/mail\n/var/mail\n", string(out))
}

func TestRunWithALocalDirectory(t *testing.T) {
	s := newSite(t)
	require.NoError(t, os.MkdirAll(filepath.Join(s.root, "var/tmp"), 0o755))
	require.NoError(t, os.Chmod(filepath.Join(s.root, "var/tmp"), os.ModeSticky|0o777))
	config := filepath.Join(s.dir, "gojail.toml")
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	text = []byte(strings.Replace(string(text), "slurm = false", "slurm = false\nlocal = [\"/var/tmp\"]", 1))
	require.NoError(t, os.WriteFile(config, text, 0o644))
	s = s.prepareSandboxes(t)
	out, err := s.command("run", "tiny", "-u", "65534", "--", "touch", "/var/tmp/x").CombinedOutput()
	require.NoError(t, err, string(out))
	assert.FileExists(t, filepath.Join(s.dir, "scratch/local/tiny/var/tmp/x"))
	assert.NoFileExists(t, filepath.Join(s.root, "var/tmp/x"))
}

func TestRunPassesSignalsOnAndLeavesNothing(t *testing.T) {
	s := newSite(t).prepareSandboxes(t)
	cmd := s.command("run", "tiny", "--", "sh", "-c", "trap 'echo caught; exit 5' USR1; echo up; setsid sleep 601 & while :; do sleep 0.05; done")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	buf := make([]byte, 3)
	_, err = out.Read(buf)
	require.NoError(t, err)
	list, err := s.gojail("ls")
	require.NoError(t, err)
	assert.Regexp(t, `run-\d+ +tiny +\d+ .* nobody +[1-4] +active`, list)
	assert.Regexp(t, `(?m)^tiny +\d+ .* current +ok$`, list)
	// What the job has, though the configuration is another one by now.
	config := filepath.Join(s.dir, "gojail.toml")
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, []byte(strings.Replace(string(text), "slurm = false", "slurm = false\ntmp = \"tmpfs\"\nshm_size = \"8M\"", 1)), 0o644))
	spec, err := s.gojail("spec", "--job", findJob(list))
	require.NoError(t, os.WriteFile(config, text, 0o644))
	require.NoError(t, err)
	assert.Contains(t, spec, s.dir+"/scratch/jobs/"+findJob(list)+"/tmp")
	assert.NotContains(t, spec, "size=8")

	require.NoError(t, cmd.Process.Signal(syscall.SIGUSR1))
	rest := make([]byte, 64)
	n, _ := out.Read(rest)
	cmd.Wait()
	assert.Equal(t, "caught\n", string(rest[:n]))
	assert.Equal(t, 5, cmd.ProcessState.ExitCode())
	assert.Eventually(t, func() bool { return !isRunning("sleep\x00601") }, time.Minute, 10*time.Millisecond, "its children are ended")
	list, err = s.gojail("ls")
	require.NoError(t, err)
	assert.Contains(t, list, "No job has a sandbox")
}

func findJob(list string) string {
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "run-") {
			return strings.Fields(line)[0]
		}
	}
	return ""
}

func isRunning(commandLine string) bool {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(text), commandLine) {
			return true
		}
	}
	return false
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
)

// printRefusedCommands is a program of a jail that prints which terminal commands are refused, also if the
// upper half of the command differs, which the kernel ignores.
func printRefusedCommands() {
	for _, command := range []uintptr{unix.TIOCSTI, unix.TIOCLINUX, unix.TIOCSTI | 1<<32, unix.TIOCGWINSZ} {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, ^uintptr(0), command, 0)
		fmt.Println(unix.ErrnoName(errno))
	}
}

// configure adds lines to the jail, and more to the file, and returns the jail.
func (s *testSite) configure(t *testing.T, lines, more string) *config.Jail {
	t.Helper()
	path := filepath.Join(s.dir, "gojail.toml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	text = []byte(strings.Replace(string(text), "slurm = false", "slurm = false\n"+lines, 1) + more)
	require.NoError(t, os.WriteFile(path, text, 0o644))
	c, err := config.ParseConfig(string(text), "n1")
	require.NoError(t, err)
	return c.Jails["tiny"]
}

func TestNobodyTypesForOthers(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	const none = `seccomp = "none"`
	for _, row := range []struct{ lines, more, want string }{
		{"", "", "EPERM\nEPERM\nEPERM\nEBADF\n"},
		{none, "", "EBADF\nEBADF\nEBADF\nEBADF\n"},
		{none, "\n[jail.limited]\nroot = \"/limited\"\ntmp_size = \"1G\"\n", "EPERM\nEPERM\nEPERM\nEBADF\n"}, // a filter of its own, for quotas
	} {
		s := newSite(t)
		s.configure(t, row.lines, row.more)
		s.prepareSandboxes(t)
		require.NoError(t, exec.Command("cp", self, s.root+"/data/ioctls").Run())
		out, err := s.command("run", "tiny", "--", "/data/ioctls").CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Equal(t, row.want, string(out), "%s%s", row.lines, row.more)
	}
}

// readStatusLine returns a value of /proc/PID/status, or "".
func readStatusLine(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func TestACommandGivesUpWhatTasksDo(t *testing.T) {
	s := newSite(t)
	jail := s.configure(t, "no_new_privs = true", "").Isolation
	s.prepareSandboxes(t)
	text, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	own, err := strconv.ParseUint(readStatusLine(string(text), "CapBnd"), 16, 64)
	require.NoError(t, err)
	require.NotZero(t, own&^jail.Bounding(), "the test needs a capability that the jail's tasks do not have")
	s.startSandbox(t)
	list, err := s.gojail("ls")
	require.NoError(t, err)

	less := fmt.Sprintf("%016x", own&jail.Bounding())
	const none = "0000000000000000"
	for _, row := range []struct {
		args      []string
		effective string // in a user namespace of the command's
		ids       string
	}{
		{[]string{"run", "tiny"}, less, "0 65534 1"},
		{[]string{"run", "tiny", "-u", "root"}, less, "0 65534 1"},
		{[]string{"run", "tiny", "-u", "nobody"}, none, "0 0 4294967295"},
		{[]string{"enter", findJob(list)}, none, "0 0 4294967295"},
		{[]string{"enter", findJob(list), "-u", "root"}, less, "0 65534 1"},
		{[]string{"enter", findJob(list), "-u", "65534"}, none, "0 0 4294967295"},
	} {
		out, err := s.command(append(row.args, "--", "cat", "/proc/self/status", "/proc/self/uid_map")...).CombinedOutput()
		require.NoError(t, err, string(out))
		got := string(out)
		assert.Equal(t, []string{less, row.effective, none, "1"},
			[]string{readStatusLine(got, "CapBnd"), readStatusLine(got, "CapEff"), readStatusLine(got, "CapInh"), readStatusLine(got, "NoNewPrivs")}, row.args)
		assert.Equal(t, "2", readStatusLine(got, "Seccomp"), row.args)
		assert.Equal(t, row.ids, strings.Join(strings.Fields(got[strings.LastIndex(strings.TrimSpace(got), "\n"):]), " "), row.args)
	}
}

// dialSocket is a program of a jail that prints whether it can connect to an abstract Unix socket.
func dialSocket(name string) {
	conn, err := net.Dial("unix", name)
	if err == nil {
		conn.Close()
	}
	fmt.Println("dialed:", err)
}

func TestAbstractSocketsOfTheNode(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	name := fmt.Sprintf("@gojail-test-%d", os.Getpid())
	listener, err := net.Listen("unix", name)
	require.NoError(t, err)
	defer listener.Close()
	for lines, want := range map[string]string{
		"":                          "dialed: <nil>",
		`abstract_sockets = "step"`: "operation not permitted",
	} {
		s := newSite(t)
		s.configure(t, lines, "")
		s.prepareSandboxes(t)
		require.NoError(t, exec.Command("cp", self, s.root+"/data/dial").Run())
		out, _ := s.command("run", "tiny", "--", "/data/dial", name).CombinedOutput()
		if strings.Contains(string(out), "needs Landlock") {
			t.Skip(string(out))
		}
		assert.Contains(t, string(out), want, lines)
	}
}

// TestNoCommandIsRunUnconfined: whatever fails, the command does not begin.
func TestNoCommandIsRunUnconfined(t *testing.T) {
	s := newSite(t).prepareSandboxes(t)
	built, err := filepath.Abs("../../build/lib/gojail")
	require.NoError(t, err)
	other := s.dir + "/lib"
	require.NoError(t, os.Mkdir(other, 0o755))
	install := func(script string) { // in the place of the launcher, for the verb enter
		script = "#!/bin/sh\n[ $1 != enter ] || " + script + "\nexec " + built + "/gojail-launcher \"$@\"\n"
		require.NoError(t, os.WriteFile(other+"/gojail-launcher", []byte(script), 0o755))
	}
	run := func(libdir string) string {
		out, err := s.command("run", "tiny", "--libdir="+libdir, "--", "touch", "/data/begun").CombinedOutput()
		assert.Error(t, err)
		assert.NoFileExists(t, s.root+"/data/begun")
		return string(out)
	}
	_, err = s.command("run", "tiny", "--", "true").CombinedOutput()
	require.NoError(t, err)
	install("kill -9 $$")
	assert.Contains(t, run(other), "ended without an answer")

	// The configuration is new, and the launcher has no library to read it with.
	launcher, err := os.ReadFile(built + "/gojail-launcher")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(other+"/bare", 0o755))
	require.NoError(t, os.WriteFile(other+"/bare/gojail-launcher", launcher, 0o755))
	install("{ touch " + s.dir + "/gojail.toml; exec " + other + "/bare/gojail-launcher \"$@\"; }")
	assert.Contains(t, run(other), "cannot load libgojail.so")

	filters, err := filepath.Glob(s.dir + "/state-n1/seccomp/*")
	require.NoError(t, err)
	require.NotEmpty(t, filters)
	for _, path := range filters {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		defer os.WriteFile(path, text, 0o600)
	}
	install("{ truncate -s 4 " + s.dir + "/state-n1/seccomp/*; exec " + built + "/gojail-launcher \"$@\"; }")
	assert.Contains(t, run(other), "is damaged; run: gojail reload")
}

func TestALauncherThatHangs(t *testing.T) {
	s := newSite(t)
	text, err := os.ReadFile(s.dir + "/gojail.toml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.dir+"/gojail.toml", append([]byte("deadline = \"4s\"\n"), text...), 0o644))
	s.prepareSandboxes(t)
	built, err := filepath.Abs("../../build/lib/gojail")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(s.dir+"/lib", 0o755))
	script := "#!/bin/sh\n[ $1 != enter ] || exec sleep 608\nexec " + built + "/gojail-launcher \"$@\"\n"
	require.NoError(t, os.WriteFile(s.dir+"/lib/gojail-launcher", []byte(script), 0o755))
	begin := time.Now()
	out, err := s.command("run", "tiny", "--libdir="+s.dir+"/lib", "--", "true").CombinedOutput()
	assert.Error(t, err)
	assert.Contains(t, string(out), "did not give one by the deadline")
	assert.Less(t, time.Since(begin), time.Minute)
	assert.False(t, isRunning("sleep\x00608"), "it is killed")
}

// TestACommandHasOfItsCaller: the umask and the cgroup, but no descriptor and nothing else of the environment.
func TestACommandHasOfItsCaller(t *testing.T) {
	s := newSite(t).prepareSandboxes(t)
	dir, err := os.Open("/")
	require.NoError(t, err)
	defer dir.Close()
	cmd := s.command("run", "tiny", "--", "sh", "-c", "umask; cat /proc/self/cgroup; ls /proc/self/fd; env")
	cmd.Path, err = exec.LookPath("sh")
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd.Args = append([]string{"sh", "-c", `umask 027; exec "$@"`, "sh", self}, cmd.Args[1:]...)
	cmd.Env = append(cmd.Env, "TERM=dumb", "LD_BIND_NOT=1")
	cmd.ExtraFiles = []*os.File{dir, dir, dir}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	cgroups, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(out), "0027\n"+string(cgroups)+"0\n1\n2\n3\n"), string(out))
	assert.Contains(t, string(out), "TERM=dumb\n")
	assert.NotContains(t, string(out), "LD_BIND_NOT")
}

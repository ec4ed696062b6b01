// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
)

// guest is what a test needs to boot one: it is skipped where that is not to be had.
func guest(t *testing.T, command string) Options {
	t.Helper()
	if why := missing(""); why != "" {
		t.Skip(why)
	}
	return Options{Command: []string{"/bin/sh", "-c", command}}
}

// children are the processes that this one has started and not waited for.
func children(t *testing.T, pid int) string {
	t.Helper()
	var all strings.Builder
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	require.NoError(t, err)
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		all.Write(text)
	}
	return strings.TrimSpace(all.String())
}

// nothingLeft checks what a run must not leave, however it ended.
func nothingLeft(t *testing.T, before []string) {
	t.Helper()
	assert.Empty(t, children(t, os.Getpid()))
	assert.Subset(t, before, runs(t), "directories of runs")
}

// runs are the directories of runs that are over; those of others may come and go meanwhile.
func runs(t *testing.T) (over []string) {
	t.Helper()
	dirs, err := filepath.Glob("../../build/vm/run-*")
	require.NoError(t, err)
	for _, dir := range dirs {
		if held, err := lock(dir); err == nil {
			held.Close()
			over = append(over, dir)
		}
	}
	return over
}

func TestOutputAndExitStatusComeBack(t *testing.T) {
	o, before := guest(t, "echo out; echo errors >&2; cat "+Share+"/note; pwd; exit 7"), runs(t)
	note := filepath.Join(t.TempDir(), "note")
	require.NoError(t, os.WriteFile(note, []byte("a note\n"), 0o644))
	var out bytes.Buffer
	o.Output, o.Dir, o.Files = &out, "/etc", map[string]string{"note": note}
	r, err := Run(t.Context(), o)
	require.NoError(t, err)
	assert.Equal(t, 7, r.Code)
	assert.Equal(t, "out\nerrors\na note\n/etc\n", out.String())
	nothingLeft(t, before)
}

func TestCommandEndedByASignal(t *testing.T) {
	r, err := Run(t.Context(), guest(t, "kill -KILL $$"))
	require.NoError(t, err)
	assert.Equal(t, 128+9, r.Code)
}

func TestCommandThatIsMissing(t *testing.T) {
	o := guest(t, "")
	o.Command = []string{"no-such-command"}
	_, err := Run(t.Context(), o)
	assert.ErrorContains(t, err, `"no-such-command": executable file not found`)
}

func TestPanicShowsTheConsole(t *testing.T) {
	o, before := guest(t, "echo so far; echo c >/proc/sysrq-trigger"), runs(t)
	var out bytes.Buffer
	o.Output = &out
	_, err := Run(t.Context(), o)
	require.ErrorContains(t, err, "vm: the guest failed: Kernel panic - not syncing: sysrq triggered crash; the end of its console:\n")
	assert.ErrorContains(t, err, "sysrq_handle_crash")
	assert.Equal(t, "so far\n", out.String())
	nothingLeft(t, before)
}

// sees calls its function when the text has come.
type sees struct {
	text string
	call func()
	all  bytes.Buffer
}

func (s *sees) Write(p []byte) (int, error) {
	s.all.Write(p)
	if strings.Contains(s.all.String(), s.text) {
		s.call()
	}
	return len(p), nil
}

// TestHangShowsTheConsole ends a guest that does nothing any more.
func TestHangShowsTheConsole(t *testing.T) {
	o, before := guest(t, "echo last words >/dev/console; echo hangs; exec sleep infinity"), runs(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o.Output = &sees{text: "hangs", call: func() { cancel(errors.New("patience is at its end")) }}
	_, err := Run(ctx, o)
	require.ErrorContains(t, err, "vm: the guest failed: patience is at its end")
	assert.ErrorContains(t, err, "last words")
	nothingLeft(t, before)
}

func TestTimeLimit(t *testing.T) {
	o, before := guest(t, "exec sleep infinity"), runs(t)
	o.Timeout = 3 * time.Second
	_, err := Run(t.Context(), o)
	require.ErrorContains(t, err, "vm: the guest failed: not done after 3s")
	nothingLeft(t, before)
}

func TestGuestThatDoesNotStart(t *testing.T) {
	o, before := guest(t, "true"), runs(t)
	usual := startTime
	startTime = time.Second
	t.Cleanup(func() { startTime = usual })
	_, err := Run(t.Context(), o)
	require.ErrorContains(t, err, "vm: the guest failed: "+errNotStarted.Error())
	nothingLeft(t, before)
}

// TestQEMUEndsWithItsStarter kills the process that started a guest.
func TestQEMUEndsWithItsStarter(t *testing.T) {
	guest(t, "")
	ctl := filepath.Join(t.TempDir(), "ctl")
	out, err := exec.Command("go", "build", "-o", ctl, "./ctl").CombinedOutput()
	require.NoError(t, err, string(out))
	cmd := exec.Command(ctl, "run", "host", "sh", "-c", "echo runs; exec sleep infinity")
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer cmd.Process.Kill()
	_, err = output.Read(make([]byte, 4))
	require.NoError(t, err)
	qemu := children(t, cmd.Process.Pid)
	text, err := os.ReadFile("/proc/" + qemu + "/cmdline")
	require.NoError(t, err, "one child: %q", qemu)
	require.Contains(t, string(text), "qemu-system-x86_64")
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	cmd.Wait()
	assert.Eventually(t, func() bool {
		text, err := os.ReadFile("/proc/" + qemu + "/cmdline")
		return err != nil || !strings.Contains(string(text), "qemu-system-x86_64")
	}, 10*time.Second, 20*time.Millisecond, "QEMU is still there: pid %s", qemu)
}

// TestFetchWithoutNetwork: one line says what is missing, and the cache stays as it was.
func TestFetchWithoutNetwork(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: it makes a network namespace")
	}
	cmd := exec.Command("unshare", "--net", "--mount", "--propagation=private", "sh", "-c",
		"mount -t tmpfs tmpfs build/cache && tests/vm/fetch; code=$?; ls build/cache; exit $code")
	cmd.Dir = "../.."
	require.NoError(t, os.MkdirAll("../../build/cache", 0o755))
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 3, exit.ExitCode(), stderr.String())
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	assert.Regexp(t, `^tests/vm/fetch: apt-get update of \S+ trixie failed; the VM needs QEMU and a kernel`, lines[len(lines)-1])
	assert.Regexp(t, `(?s)^fetching [^\n]*\nvm-[0-9a-f]{16}\.log\nvm\.lock\n$`, stdout.String())
}

func TestAccelerator(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	device, none := file("kvm", ""), filepath.Join(dir, "none")
	intel, bare := file("intel", "processor: 0\nflags\t\t: fpu vmx sse\n"), file("bare", "flags\t\t: fpu svml sse\n")
	for _, c := range []struct{ cpuinfo, device, want string }{
		{intel, device, "kvm"}, {intel, none, "tcg"}, {bare, device, "tcg"}, {none, device, "tcg"},
	} {
		assert.Contains(t, accelerator(c.cpuinfo, c.device)[1], c.want, c)
	}
}

// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"cmp"
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

// newGuestOptions returns the options of a guest that runs a shell command. It skips the test if no guest
// can run here.
func newGuestOptions(t *testing.T, command string) Options {
	t.Helper()
	kernel := os.Getenv("GOJAIL_KERNEL")
	if _, err := findPlaces(t.Context(), "", "", kernel); err != nil {
		t.Skip(err)
	}
	return Options{Kernel: kernel, Command: []string{"/bin/sh", "-c", command}}
}

// listChildren returns the children of a process that it has not waited for.
func listChildren(t *testing.T, pid int) string {
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

// requireNothingLeft requires that a run left no process and no directory.
func requireNothingLeft(t *testing.T, before []string) {
	t.Helper()
	assert.Empty(t, listChildren(t, os.Getpid()))
	assert.Subset(t, before, listEndedRuns(t), "directories of runs")
}

// listEndedRuns returns the directories of runs that have ended. Runs of others may begin and end meanwhile.
func listEndedRuns(t *testing.T) (over []string) {
	t.Helper()
	dirs, err := filepath.Glob("../../build/vm/run-*")
	require.NoError(t, err)
	for _, dir := range dirs {
		if held, err := lockDirectory(dir); err == nil {
			held.Close()
			over = append(over, dir)
		}
	}
	return over
}

func TestOutputAndExitStatusComeBack(t *testing.T) {
	o, before := newGuestOptions(t, "echo out; echo errors >&2; cat "+Share+"/note; pwd; uname -r; exit 7"), listEndedRuns(t)
	note := filepath.Join(t.TempDir(), "note")
	require.NoError(t, os.WriteFile(note, []byte("a note\n"), 0o644))
	var out bytes.Buffer
	o.Output, o.Dir, o.Files = &out, "/etc", map[string]string{"note": note}
	r, err := Run(t.Context(), o)
	require.NoError(t, err)
	assert.Equal(t, 7, r.Code)
	assert.Equal(t, "out\nerrors\na note\n/etc\n"+r.Kernel+"\n", out.String())
	if o.Kernel != "newest" {
		assert.True(t, strings.HasPrefix(r.Kernel, cmp.Or(o.Kernel, defaultKernel)+"."), "the kernel %s", r.Kernel)
	}
	assert.Positive(t, r.Boot)
	requireNothingLeft(t, before)
}

// TestCommandEndedByASignal also looks at the guest's clock, which is not the processor's counter.
func TestCommandEndedByASignal(t *testing.T) {
	o := newGuestOptions(t, "cat /sys/devices/system/clocksource/clocksource0/current_clocksource; kill -KILL $$")
	var out bytes.Buffer
	o.Output = &out
	r, err := Run(t.Context(), o)
	require.NoError(t, err)
	assert.Equal(t, 128+9, r.Code)
	assert.Contains(t, []string{"hpet\n", "kvm-clock\n"}, out.String())
}

func TestCommandThatIsMissing(t *testing.T) {
	o := newGuestOptions(t, "")
	o.Command = []string{"no-such-command"}
	_, err := Run(t.Context(), o)
	assert.ErrorContains(t, err, `"no-such-command": executable file not found`)
}

func TestPanicShowsTheConsole(t *testing.T) {
	o, before := newGuestOptions(t, "echo so far; echo c >/proc/sysrq-trigger"), listEndedRuns(t)
	var out bytes.Buffer
	o.Output = &out
	_, err := Run(t.Context(), o)
	require.ErrorContains(t, err, "vm: the guest failed: Kernel panic - not syncing: sysrq triggered crash; the end of its console:\n")
	assert.ErrorContains(t, err, "sysrq_handle_crash")
	assert.Equal(t, "so far\n", out.String())
	requireNothingLeft(t, before)
}

// textTrigger calls its function once the text has been written to it.
type textTrigger struct {
	text string
	call func()
	all  bytes.Buffer
}

func (s *textTrigger) Write(p []byte) (int, error) {
	s.all.Write(p)
	if strings.Contains(s.all.String(), s.text) {
		s.call()
	}
	return len(p), nil
}

// TestHangShowsTheConsole ends a guest that does nothing any more.
func TestHangShowsTheConsole(t *testing.T) {
	o, before := newGuestOptions(t, "echo last words >/dev/console; echo hangs; exec sleep infinity"), listEndedRuns(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o.Output = &textTrigger{text: "hangs", call: func() { cancel(errors.New("patience is at its end")) }}
	_, err := Run(ctx, o)
	require.ErrorContains(t, err, "vm: the guest failed: patience is at its end")
	assert.ErrorContains(t, err, "last words")
	requireNothingLeft(t, before)
}

func TestTimeLimit(t *testing.T) {
	o, before := newGuestOptions(t, "exec sleep infinity"), listEndedRuns(t)
	o.Timeout = 3 * time.Second
	_, err := Run(t.Context(), o)
	require.ErrorContains(t, err, "vm: the guest failed: not done after 3s")
	requireNothingLeft(t, before)
}

func TestGuestThatDoesNotStart(t *testing.T) {
	o, before := newGuestOptions(t, "true"), listEndedRuns(t)
	o.startTimeout = time.Second
	_, err := Run(t.Context(), o)
	require.ErrorContains(t, err, "vm: the guest failed: "+errNotStarted.Error())
	requireNothingLeft(t, before)
}

// TestQEMUEndsWithItsStarter kills the process that started a guest.
func TestQEMUEndsWithItsStarter(t *testing.T) {
	newGuestOptions(t, "")
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
	qemu := listChildren(t, cmd.Process.Pid)
	text, err := os.ReadFile("/proc/" + qemu + "/cmdline")
	require.NoError(t, err, "one child: %q", qemu)
	require.Contains(t, string(text), "qemu-system-x86_64")
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	cmd.Wait()
	assert.Eventually(t, func() bool {
		text, err := os.ReadFile("/proc/" + qemu + "/cmdline")
		return err != nil || !strings.Contains(string(text), "qemu-system-x86_64")
	}, time.Minute, 20*time.Millisecond, "QEMU is still there: pid %s", qemu)
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
	assert.Regexp(t, `^tests/vm/fetch: apt-get update of \S+ trixie failed; the VM needs QEMU`, lines[len(lines)-1])
	assert.Regexp(t, `(?s)^fetching [^\n]*\nvm-[0-9a-f]{16}\.log\nvm\.lock\n$`, stdout.String())
}

// TestKernelOrProcessorThatIsUnknown fetches nothing: the name is wrong.
func TestKernelOrProcessorThatIsUnknown(t *testing.T) {
	for _, c := range []struct{ kernel, arch, want string }{
		{"5.10", "", "the kernel 5.10 is none of 6.1, 6.12, newest, 16k"},
		{"6.12", "riscv64", "no VM for the processor riscv64: write GOJAIL_ARCH=amd64 or arm64"},
	} {
		cmd := exec.Command("../../tests/vm/fetch", c.kernel)
		cmd.Env = append(os.Environ(), "GOJAIL_ARCH="+c.arch)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit)
		assert.Equal(t, 2, exit.ExitCode())
		assert.Equal(t, "../../tests/vm/fetch: "+c.want+"\n", string(out))
	}
	_, _, err := findProcessor("riscv64")
	assert.EqualError(t, err, `vm: no guest for the processor "riscv64": write amd64 or arm64`)
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
		assert.Contains(t, acceleratorArguments(c.cpuinfo, c.device)[1], c.want, c)
	}
}

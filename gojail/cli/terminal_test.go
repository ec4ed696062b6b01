// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pushInput is a program of the jail that inserts a command into the input of each terminal that
// it finds, for the next process that reads there.
func pushInput() {
	for fd := range 4 {
		if fd == 3 {
			fd, _ = unix.Open("/dev/tty", unix.O_RDWR, 0)
		}
		for _, c := range []byte("echo owned\n") {
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, uintptr(unsafe.Pointer(&c)))
			if errno != 0 {
				fmt.Println("TIOCSTI:", errno)
				break
			}
		}
	}
}

// outerTerminal is the administrator's terminal, as a shell leaves it.
type outerTerminal struct {
	pty, tty *os.File
	modes    unix.Termios
}

func newOuterTerminal(t *testing.T) *outerTerminal {
	t.Helper()
	pty, err := unix.Open("/dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(pty, unix.TIOCSPTLCK, 0))
	tty, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(pty), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	require.Zero(t, errno)
	o := &outerTerminal{pty: os.NewFile(uintptr(pty), "pty"), tty: os.NewFile(tty, "tty")}
	t.Cleanup(func() { o.pty.Close(); o.tty.Close() })
	modes, err := unix.IoctlGetTermios(int(o.tty.Fd()), unix.TCGETS)
	require.NoError(t, err)
	modes.Iflag |= unix.ICRNL
	modes.Oflag |= unix.OPOST | unix.ONLCR
	modes.Lflag |= unix.ICANON | unix.ECHO | unix.ISIG
	require.NoError(t, unix.IoctlSetTermios(int(o.tty.Fd()), unix.TCSETS, modes))
	o.modes = *modes
	return o
}

// attachTo makes the terminal the controlling terminal of a command, and the descriptors that are named.
func (o *outerTerminal) attachTo(cmd *exec.Cmd, stdin, stdout, stderr bool) *exec.Cmd {
	ctty := -1
	for fd, is := range []bool{stdin, stdout, stderr} {
		if is {
			[]func(){func() { cmd.Stdin = o.tty }, func() { cmd.Stdout = o.tty }, func() { cmd.Stderr = o.tty }}[fd]()
			ctty = fd
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: ctty}
	return cmd
}

// waitForOutput reads the terminal's output until it contains the text.
func (o *outerTerminal) waitForOutput(t *testing.T, want string) string {
	t.Helper()
	var seen bytes.Buffer
	buffer := make([]byte, 4096)
	o.pty.SetReadDeadline(time.Now().Add(time.Minute))
	for !strings.Contains(seen.String(), want) {
		n, err := o.pty.Read(buffer)
		seen.Write(buffer[:n])
		require.NoError(t, err, "%q is not shown: %q", want, seen.String())
	}
	return seen.String()
}

func (o *outerTerminal) typeText(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(o.pty, text)
	require.NoError(t, err)
}

func (o *outerTerminal) requireUntouched(t *testing.T, what any) {
	t.Helper()
	waiting, err := unix.IoctlGetInt(int(o.tty.Fd()), unix.TIOCINQ)
	require.NoError(t, err)
	assert.Zero(t, waiting, "%v: bytes wait for root's shell", what)
	modes, err := unix.IoctlGetTermios(int(o.tty.Fd()), unix.TCGETS)
	require.NoError(t, err)
	assert.Equal(t, o.modes, *modes, "%v", what)
}

func TestNothingIsTypedIntoRootsTerminal(t *testing.T) {
	s := newSite(t).prepareSandboxes(t)
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, exec.Command("cp", self, s.root+"/data/push").Run())
	s.startSandbox(t)
	list, err := s.gojail("ls")
	require.NoError(t, err)
	for _, on := range [][3]bool{{true, true, true}, {true, false, false}, {false, true, false}, {false, false, true}} {
		for _, user := range []string{"nobody", "root"} {
			o := newOuterTerminal(t)
			args := []string{"enter", findJob(list), "-u", user, "--", "/data/push"}
			cmd := o.attachTo(s.command(args...), on[0], on[1], on[2])
			require.NoError(t, cmd.Start())
			cmd.Wait()
			assert.Zero(t, cmd.ProcessState.ExitCode(), "%v", on)
			o.requireUntouched(t, on)
		}
	}
}

func TestATerminalOfItsOwn(t *testing.T) {
	s := newSite(t).prepareSandboxes(t)
	o := newOuterTerminal(t)
	require.NoError(t, unix.IoctlSetWinsize(int(o.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 11, Col: 77}))
	cmd := o.attachTo(s.command("run", "tiny", "-u", "65534", "--", "sh"), true, true, true)
	require.NoError(t, cmd.Start())
	o.typeText(t, "stty size; echo to-$((1+1)) >/dev/stderr\r")
	assert.Contains(t, o.waitForOutput(t, "to-2\r\n"), "11 77\r\n")
	o.typeText(t, "tty\r")
	o.waitForOutput(t, "/dev/pts/0\r\n") // among the jail's own; the prompt may come before or after what is typed
	require.NoError(t, unix.IoctlSetWinsize(int(o.tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 12, Col: 78}))
	o.typeText(t, "trap 'stty size' WINCH; sleep 600\r")
	o.waitForOutput(t, "sleep 600")
	assert.Eventually(t, func() bool { return isRunning("sleep\x00600") }, time.Minute, 10*time.Millisecond)
	o.typeText(t, "\x03") // Ctrl-C ends what runs there, not this command
	o.typeText(t, "stty size\r")
	o.waitForOutput(t, "12 78\r\n")
	o.typeText(t, "exit 7\r")
	cmd.Wait()
	assert.Equal(t, 7, cmd.ProcessState.ExitCode())
	o.requireUntouched(t, "exit")

	for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGINT} {
		cmd = o.attachTo(s.command("run", "tiny", "--", "sh", "-c", "echo up; exec sleep 602"), true, true, true)
		require.NoError(t, cmd.Start())
		o.waitForOutput(t, "up\r\n")
		require.NoError(t, cmd.Process.Signal(sig))
		cmd.Wait()
		assert.Equal(t, 128+int(sig), cmd.ProcessState.ExitCode())
		o.requireUntouched(t, sig)
	}
}

// All of the output comes, to where it goes, and what stays in the background does not keep the terminal.
func TestOutputOfATerminal(t *testing.T) {
	s := newSite(t).prepareSandboxes(t)
	o := newOuterTerminal(t)
	var text strings.Builder
	cmd := o.attachTo(s.command("run", "tiny", "--", "sh", "-c", "setsid sleep 603 & seq 20000; echo to stderr >&2; cat; echo end"), true, false, true)
	cmd.Stdout = &text
	require.NoError(t, cmd.Run())
	assert.True(t, strings.HasSuffix(text.String(), "\n19999\n20000\nend\n"), "without keyboard the input is empty")
	assert.Equal(t, "to stderr\r\n", o.waitForOutput(t, "stderr\r\n"))
	cmd = o.attachTo(s.command("run", "tiny", "--", "sh", "-c", "setsid sleep 604 & seq 20000; echo e''nd"), true, true, true)
	require.NoError(t, cmd.Start())
	assert.Contains(t, o.waitForOutput(t, "\nend\r\n"), "\n19999\r\n20000\r\n")
	require.NoError(t, cmd.Wait())
	o.requireUntouched(t, "the end")
	cmd = o.attachTo(s.command("run", "tiny", "--", "sh", "-c", "yes & exit 3"), true, true, true)
	require.NoError(t, cmd.Start())
	done := make(chan error)
	go func() { done <- cmd.Wait() }()
	go io.Copy(io.Discard, o.pty)
	select {
	case <-done:
		assert.Equal(t, 3, cmd.ProcessState.ExitCode())
	case <-time.After(time.Minute):
		cmd.Process.Kill()
		t.Error("what writes in the background keeps the command")
	}
}

// startSandbox runs a program in a sandbox for the rest of the test.
func (s *testSite) startSandbox(t *testing.T) {
	t.Helper()
	job := s.command("run", "tiny", "--", "sh", "-c", "echo up; exec sleep 606")
	up, err := job.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, job.Start())
	t.Cleanup(func() { job.Process.Signal(unix.SIGTERM); job.Wait() })
	_, err = up.Read(make([]byte, 3))
	require.NoError(t, err)
}

// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/rootpath"
)

// terminal connects a command in a jail with this process's terminal through a pty of the command's own.
// With a descriptor of root's terminal, a program of the jail could read what is typed, and insert input
// for the shell that reads the terminal afterwards (TIOCSTI, ioctl_tty(2)).
type terminal struct {
	pty, tty *os.File // the two ends of the pty; nil: this process has no terminal
	ptyFD    int      // pty's descriptor; File.Fd would set it to blocking mode
	output   *os.File // the terminal that shows the pty's output
	keyboard bool     // the terminal's input goes to the command
	saved    *term.State
	copied   chan struct{}
	resized  chan os.Signal
	ended    atomic.Bool
}

// newTerminal inspects the standard descriptors, before open. The command gets the terminal's input only
// where its output is the terminal, too: in `gojail run ... | less` the input is for less.
func newTerminal() *terminal {
	t := &terminal{}
	t.keyboard = term.IsTerminal(0) && term.IsTerminal(1) && isForeground()
	switch {
	case term.IsTerminal(1):
		t.output = os.Stdout
	case term.IsTerminal(2):
		t.output = os.Stderr
	}
	return t
}

// open opens the pty, if one is needed, in the devpts instance of the holder's jail.
func (t *terminal) open(holder state.Record, uid uint32) error {
	if t.output == nil {
		return nil
	}
	root, err := holder.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	if err := t.openPTY(root, uid); err != nil {
		return fmt.Errorf("cannot create a terminal for the command: %w", err)
	}
	t.copySize() // before the command reads the size
	return nil
}

// isForeground reports whether this process is in the terminal's foreground process group, or the
// terminal has none.
func isForeground() bool {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// openMaster opens a new pty below a root. It verifies the file, since the root's owner may have replaced it.
func openMaster(root *os.File) (int, error) {
	at, err := rootpath.OpenBeneath(int(root.Fd()), "dev/pts/ptmx", rootpath.InRoot|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	var fs unix.Statfs_t
	if err := unix.Fstatfs(at, &fs); err != nil {
		return -1, err
	}
	if fs.Type != unix.DEVPTS_SUPER_MAGIC {
		return -1, errors.New("it is not a terminal of the node (devpts)")
	}
	return unix.Open(fmt.Sprintf("/proc/self/fd/%d", at), unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}

func (t *terminal) openPTY(root *os.File, uid uint32) (err error) {
	const path = "/dev/pts/ptmx"
	t.ptyFD, err = openMaster(root)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	t.pty = os.NewFile(uintptr(t.ptyFD), path)
	if err := unix.IoctlSetPointerInt(t.ptyFD, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	// TIOCGPTPEER (Linux 4.13) uses no path, which the owner of the jail may have redirected.
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(t.ptyFD), unix.TIOCGPTPEER,
		unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return errno
	}
	t.tty = os.NewFile(fd, "tty")
	if err := t.tty.Chown(int(uid), -1); err != nil { // otherwise the user could not open /dev/stdout
		return err
	}
	if !t.keyboard {
		_, err := term.MakeRaw(int(fd)) // this process's terminal translates the line ends
		return err
	}
	modes, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return err
	}
	return unix.IoctlSetTermios(int(fd), unix.TCSETS, modes)
}

func (t *terminal) copySize() {
	if size, err := unix.IoctlGetWinsize(int(t.output.Fd()), unix.TIOCGWINSZ); err == nil {
		unix.IoctlSetWinsize(t.ptyFD, unix.TIOCSWINSZ, size)
	}
}

// startCopying copies between the terminal and the pty. It is called once the command has started.
func (t *terminal) startCopying() (err error) {
	if t.pty == nil {
		return nil
	}
	if t.keyboard {
		if t.saved, err = term.MakeRaw(0); err != nil {
			return fmt.Errorf("cannot set the terminal's modes: %w", err)
		}
		go func() {
			io.Copy(t.pty, os.Stdin)
			t.pty.Close() // a hangup of the terminal hangs up the command's
		}()
	}
	t.copied, t.resized = make(chan struct{}), make(chan os.Signal, 1)
	go t.copyOutput()
	signal.Notify(t.resized, unix.SIGWINCH)
	t.copySize()
	go func() {
		for range t.resized {
			t.copySize()
		}
	}()
	return nil
}

// After the command has ended, its output ends with a quiet period, or after more bytes than a pty
// buffers: processes that it left in the background may continue to write.
const (
	quietPeriod = 100 * time.Millisecond
	ptyCapacity = 1 << 20
)

// copyOutput copies until every process has closed the command's end, or the command has ended and its
// output, too.
func (t *terminal) copyOutput() {
	defer close(t.copied)
	buffer := make([]byte, 32<<10)
	for rest := ptyCapacity; rest > 0; {
		n, err := t.pty.Read(buffer)
		t.output.Write(buffer[:n])
		if err != nil {
			return
		}
		if t.ended.Load() {
			rest -= n
			t.pty.SetReadDeadline(time.Now().Add(quietPeriod))
		}
	}
}

// drainOutput prints the remaining output of the command, which has ended.
func (t *terminal) drainOutput() {
	if t.copied != nil {
		t.ended.Store(true)
		t.pty.SetReadDeadline(time.Now().Add(quietPeriod))
		<-t.copied
	}
}

// close restores the terminal's modes. It may be called at any time.
func (t *terminal) close() {
	if t.saved != nil {
		term.Restore(0, t.saved)
	}
	if t.resized != nil {
		signal.Stop(t.resized)
	}
	if t.pty != nil {
		t.pty.Close()
	}
}

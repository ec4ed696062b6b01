// SPDX-License-Identifier: Apache-2.0

package main

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

// terminal is what a command in a jail has for this process's terminal: a pty of its
// own. From root's, a program of the jail could read what is typed, and type itself
// into the shell that comes after it (TIOCSTI, ioctl_tty(2)).
type terminal struct {
	stdin, stdout, stderr *os.File // the command's
	pty, tty              *os.File // its two ends; nil: nothing of ours is a terminal
	ptyFD                 int      // File.Fd would make pty blocking
	ours                  *os.File // what pty is shown on
	keyboard              bool     // what is typed goes to the command
	before                *term.State
	resized               chan os.Signal
	ended                 atomic.Bool
	shown                 chan struct{}
}

// newTerminal is called before open. The keyboard is the command's
// where its output is on the terminal, too: in `gojail run ... | less` it is less's.
func newTerminal() (*terminal, error) {
	t := &terminal{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	in, out, errs := term.IsTerminal(0), term.IsTerminal(1), term.IsTerminal(2)
	t.keyboard = in && out && foreground()
	if in && !t.keyboard {
		null, err := os.Open("/dev/null")
		if err != nil {
			return nil, err
		}
		t.stdin = null
	}
	if errs {
		t.ours = os.Stderr
	}
	if out {
		t.ours = os.Stdout
	}
	return t, nil
}

// open makes the pty, if one is needed, among those of the holder's jail.
func (t *terminal) open(holder state.Record, uid uint32) error {
	if t.ours == nil {
		return nil
	}
	root, err := holder.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	if err := t.make(root, uid); err != nil {
		return fmt.Errorf("cannot make a terminal for the command: %w", err)
	}
	if t.keyboard {
		t.stdin = t.tty
	}
	if term.IsTerminal(2) {
		t.stderr = t.tty
	}
	if t.ours == os.Stdout {
		t.stdout = t.tty
	}
	t.resize() // before the command looks
	return nil
}

// foreground tells whether the shell has given us the terminal, or it is not a shell's at all.
func foreground() bool {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

// openMaster opens a new pty below that root, whose owner may have put anything in its place.
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
		return -1, errors.New("it is no terminal of the node's (devpts)")
	}
	return unix.Open(fmt.Sprintf("/proc/self/fd/%d", at), unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
}

func (t *terminal) make(root *os.File, uid uint32) (err error) {
	const path = "/dev/pts/ptmx"
	t.ptyFD, err = openMaster(root)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	t.pty = os.NewFile(uintptr(t.ptyFD), path)
	if err := unix.IoctlSetPointerInt(t.ptyFD, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	// Linux 4.13. By no path, which the jail's owner may have led elsewhere.
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(t.ptyFD), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return errno
	}
	t.tty = os.NewFile(fd, "tty")
	if err := t.tty.Chown(int(uid), -1); err != nil { // or /dev/stdout could not be opened
		return err
	}
	if !t.keyboard {
		_, err := term.MakeRaw(int(fd)) // ours ends the lines
		return err
	}
	modes, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return err
	}
	return unix.IoctlSetTermios(int(fd), unix.TCSETS, modes)
}

func (t *terminal) resize() {
	if size, err := unix.IoctlGetWinsize(int(t.ours.Fd()), unix.TIOCGWINSZ); err == nil {
		unix.IoctlSetWinsize(t.ptyFD, unix.TIOCSWINSZ, size)
	}
}

// word tells gojail-launcher which of the command's descriptors is to be its terminal; the pty is on 1 or 2.
func (t *terminal) word() string {
	switch {
	case t.tty == nil:
		return "tty="
	case t.stdout == t.tty:
		return "tty=1"
	}
	return "tty=2"
}

// begin copies, once the command is there.
func (t *terminal) begin() (err error) {
	if t.pty == nil {
		return nil
	}
	t.tty.Close() // pty ends when the command's are closed
	if t.keyboard {
		if t.before, err = term.MakeRaw(0); err != nil {
			return fmt.Errorf("cannot set the terminal's modes: %w", err)
		}
		go func() {
			io.Copy(t.pty, os.Stdin)
			t.pty.Close() // ours hung up, and so does the command's
		}()
	}
	t.shown, t.resized = make(chan struct{}), make(chan os.Signal, 1)
	go t.show()
	signal.Notify(t.resized, unix.SIGWINCH)
	t.resize()
	go func() {
		for range t.resized {
			t.resize()
		}
	}()
	return nil
}

// After the command has ended, a silence is the end of its output, and so is more
// than a pty holds: what it left in the background may write on.
const (
	silence = 100 * time.Millisecond
	ptyHold = 1 << 20
)

// show copies until nobody has the command's end open, or the command has ended.
func (t *terminal) show() {
	defer close(t.shown)
	buffer := make([]byte, 32<<10)
	for rest := ptyHold; rest > 0; {
		n, err := t.pty.Read(buffer)
		t.ours.Write(buffer[:n])
		if err != nil {
			return
		}
		if t.ended.Load() {
			rest -= n
			t.pty.SetReadDeadline(time.Now().Add(silence))
		}
	}
}

// drain shows what the command, which has ended, had still to say.
func (t *terminal) drain() {
	if t.shown != nil {
		t.ended.Store(true)
		t.pty.SetReadDeadline(time.Now().Add(silence))
		<-t.shown
	}
}

// close gives our terminal back as it was. It may be called at any time.
func (t *terminal) close() {
	if t.before != nil {
		term.Restore(0, t.before)
	}
	if t.resized != nil {
		signal.Stop(t.resized)
	}
	if t.pty != nil {
		t.pty.Close()
	}
}

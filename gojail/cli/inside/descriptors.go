// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/gojail/gojail/gojail/state"
)

// descriptors connects the descriptors 0 to 2 of a command in a jail with those of this process, by copying. Each is a
// pipe, or a terminal if this process's is one. With a descriptor of root's, a program of the jail could do more to
// the file than root meant: read what is open for writing as well, change its mode (fchmod(2)), or open it again
// (proc_pid_fd(5)).
type descriptors struct {
	of       [3]*os.File // of the command
	terminal *terminal
	input    *os.File // writes to of[0]; nil: that is the terminal
	outputs  []*output
}

// output copies what a command writes to a pipe.
type output struct {
	pipe, to *os.File
	copied   chan struct{}
	err      error // once copied is closed
}

// pipeSize is the size of a pipe in bytes. The kernel may allow less (pipe(7)).
const pipeSize = 1 << 20

// openDescriptors opens the descriptors of a command of that uid in the sandbox of a holder.
func openDescriptors(holder state.Record, uid uint32) (*descriptors, error) {
	d := &descriptors{terminal: newTerminal()}
	err := d.terminal.open(holder, uid)
	if err == nil {
		err = d.openPipes()
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *descriptors) openPipes() (err error) {
	if d.terminal.keyboard {
		d.of[0] = d.terminal.tty
	} else if d.of[0], d.input, err = openPipe(); err != nil {
		return err
	}
	for number, own := range []*os.File{1: os.Stdout, 2: os.Stderr} {
		switch {
		case own == nil:
		case term.IsTerminal(number):
			d.of[number] = d.terminal.tty
		// one pipe keeps the order of what is written
		case number == 2 && len(d.outputs) == 1 && areSame(own, d.outputs[0].to):
			d.of[2] = d.of[1]
		default:
			o := &output{to: own, copied: make(chan struct{})}
			if o.pipe, d.of[number], err = openPipe(); err != nil {
				return err
			}
			d.outputs = append(d.outputs, o)
		}
	}
	return nil
}

// openPipe opens a pipe that the command may open again, as /dev/stdout: no other process reaches it (ptrace(2)).
func openPipe() (read, write *os.File, err error) {
	if read, write, err = os.Pipe(); err != nil {
		return nil, nil, fmt.Errorf("cannot create a pipe for the command: %w", err)
	}
	if err = read.Chmod(0o666); err != nil { // of both ends
		read.Close()
		write.Close()
		return nil, nil, fmt.Errorf("cannot give the command its pipe: %w", err)
	}
	if raw, err := read.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
	}
	return read, write, nil
}

// areSame reports whether two descriptors are of one file.
func areSame(a, b *os.File) bool {
	one, err := a.Stat()
	other, also := b.Stat()
	return err == nil && also == nil && os.SameFile(one, other)
}

// formatArgument returns the argument for gojail-launcher that names the descriptor of the command's controlling
// terminal, 1 or 2.
func (d *descriptors) formatArgument() string {
	for number := 1; number <= 2; number++ {
		if d.terminal.tty != nil && d.of[number] == d.terminal.tty {
			return fmt.Sprintf("tty=%d", number)
		}
	}
	return "tty="
}

// startCopying begins to copy. It is called once the command has started.
func (d *descriptors) startCopying() error {
	d.closeCommands() // each pipe ends when the command closes its copies
	if err := d.terminal.startCopying(); err != nil {
		return err
	}
	// A write to a descriptor that nobody reads is to be an error, and not to end this process before the sandbox is
	// removed.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	if d.input != nil {
		go d.copyInput()
	}
	for _, o := range d.outputs {
		go o.copy()
	}
	return nil
}

// closeCommands closes this process's copies of the command's descriptors.
func (d *descriptors) closeCommands() {
	for _, file := range d.of {
		if file != nil {
			file.Close()
		}
	}
}

// copyInput copies this process's input. That of a terminal is for the command only with its output, see terminal.
func (d *descriptors) copyInput() {
	if !term.IsTerminal(0) {
		// Without the methods of os.File, which copy in small pieces.
		io.CopyBuffer(struct{ io.Writer }{d.input}, struct{ io.Reader }{os.Stdin}, make([]byte, pipeSize))
	}
	d.input.Close()
}

// copy copies until every process has closed the pipe, or the command has ended and the pipe is empty.
func (o *output) copy() {
	defer close(o.copied)
	defer o.pipe.Close() // then the command gets SIGPIPE
	buffer := make([]byte, pipeSize)
	for {
		n, err := o.pipe.Read(buffer)
		if !o.write(buffer[:n]) {
			return
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			o.copyRest(buffer)
			return
		}
		if err != nil {
			return
		}
	}
}

// write reports whether it has written the text, and notes the error otherwise, but for a reader that has gone.
func (o *output) write(text []byte) bool {
	_, err := o.to.Write(text)
	if err != nil && !errors.Is(err, unix.EPIPE) {
		o.err = fmt.Errorf("cannot copy the command's output: %w", err)
	}
	return err == nil
}

// copyRest copies what is in the pipe, without waiting for more: processes in the background may continue to write.
func (o *output) copyRest(buffer []byte) {
	o.pipe.SetReadDeadline(time.Time{})
	raw, err := o.pipe.SyscallConn()
	for rest, n := pipeSize, 0; err == nil && rest > 0; rest -= n {
		err = raw.Read(func(fd uintptr) bool {
			n, err = unix.Read(int(fd), buffer[:rest])
			return true
		})
		if n <= 0 || !o.write(buffer[:n]) {
			return
		}
	}
}

// finishCopying copies the remaining output of the command, which has ended, unless it is given up: a reader may have
// stopped.
func (d *descriptors) finishCopying(givenUp chan struct{}) (err error) {
	d.terminal.drainOutput()
	for _, o := range d.outputs {
		o.pipe.SetReadDeadline(time.Now())
		select {
		case <-o.copied:
			err = errors.Join(err, o.err)
		case <-givenUp:
			return errors.New("the command's output was not read to its end")
		}
	}
	return err
}

// close closes what is open. It may be called at any time.
func (d *descriptors) close() {
	d.closeCommands()
	d.terminal.close()
	if d.input != nil {
		d.input.Close()
	}
	for _, o := range d.outputs {
		if o.pipe != nil {
			o.pipe.Close()
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/deadline"
)

// The process that slurmd waits for only supervises: it starts this program again for the run,
// which may hang in the kernel, and abandons it at its deadline. slurmd waits for its own child
// without a deadline (waitpid in src/common/run_command.c), so this process reads no file and
// does not pass slurmd's pipe to the run.
const (
	startTime = time.Minute            // for the run to report its time limit: as long as slurmd itself waits
	endTime   = 100 * time.Millisecond // for a killed run to end
	grace     = time.Second            // for a run to end by itself before it is killed
)

// controlEnv is set in the environment of the run; controlFD is then the run's end of the
// socket to the supervisor.
const (
	controlEnv = "GOJAIL_HEALTHCHECK_CONTROL"
	controlFD  = 3
)

// supervise starts a run with these arguments and returns its exit code.
func supervise(args []string) (exit int, err error) {
	began := time.Now()
	r, err := startRun(args)
	if err != nil {
		return exitUnknown, err
	}
	exit, err = r.waitForExit(began)
	r.killRun()
	for from, to := range map[*os.File]*os.File{r.out: os.Stdout, r.err: os.Stderr} {
		_, _ = from.Seek(0, io.SeekStart)
		_, _ = io.Copy(to, from)
	}
	return exit, err
}

var errLate = errors.New("the run did not finish in time; to find what hangs: " +
	"ps -eLo pid,stat,wchan:30,comm | grep ' D'")

var errCrashed = errors.New("the run crashed; please report it")

// supervisedRun is a run with its files and its socket.
type supervisedRun struct {
	cmd      *exec.Cmd
	out, err *os.File                 // its output
	control  *os.File                 // socket to the run
	ended    *deadline.Pending[error] // returns after waitpid
}

// startRun starts the run, which is killed when this process ends.
func startRun(args []string) (*supervisedRun, error) {
	r := &supervisedRun{cmd: exec.Command("/proc/self/exe", args...)}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot create a socket for the run: %w", err)
	}
	r.control = os.NewFile(uintptr(pair[0]), "control")
	childEnd := os.NewFile(uintptr(pair[1]), "control")
	defer childEnd.Close()
	for name, file := range map[string]**os.File{"stdout": &r.out, "stderr": &r.err} {
		fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("cannot create a file for the run's %s: %w", name, err)
		}
		*file = os.NewFile(uintptr(fd), name)
	}
	r.cmd.Env = append(os.Environ(), controlEnv+"=1")
	r.cmd.Stdout, r.cmd.Stderr, r.cmd.ExtraFiles = r.out, r.err, []*os.File{childEnd}
	r.cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	started := make(chan error, 1)
	r.ended = deadline.Start(func() error {
		runtime.LockOSThread() // the kernel sends Pdeathsig when this thread ends, prctl(2)
		err := r.cmd.Start()
		started <- err
		if err == nil {
			err = r.cmd.Wait()
		}
		return err
	})
	select {
	case err = <-started:
	case <-time.After(startTime): // the program is still being loaded from its disk
		err = errLate
	}
	return r, err
}

// waitForExit returns the exit code that the run reports. The run's end of the socket is closed
// when all of its threads have ended.
func (r *supervisedRun) waitForExit(began time.Time) (exit int, err error) {
	messages := make(chan message)
	go r.receiveMessages(messages)
	deadline := time.After(startTime)
	for {
		select {
		case m, open := <-messages:
			switch {
			case !open:
				return exitUnknown, errCrashed
			case m.What == tellsExit:
				return int(m.Value), nil
			}
			deadline = time.After(time.Until(began.Add(time.Duration(m.Value))))
		case <-deadline:
			return exitUnknown, errLate
		}
	}
}

// receiveMessages receives messages until the run has ended. The lock of the run, which arrives
// with its limit, stays open in this process: a run that cannot be killed does not block the
// next run.
func (r *supervisedRun) receiveMessages(to chan<- message) {
	defer close(to)
	text, rights := make([]byte, binary.Size(message{})), make([]byte, unix.CmsgSpace(4))
	for {
		n, _, _, _, err := unix.Recvmsg(int(r.control.Fd()), text, rights, unix.MSG_CMSG_CLOEXEC)
		var m message
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil || n == 0:
			return
		}
		if _, err := binary.Decode(text[:n], binary.NativeEndian, &m); err != nil {
			return
		}
		to <- m
	}
}

// killRun kills the run, and waits briefly for it to end.
func (r *supervisedRun) killRun() {
	if _, ended := r.ended.AwaitFor(0); ended {
		return
	}
	_ = unix.Kill(-r.cmd.Process.Pid, unix.SIGKILL)
	r.ended.AwaitFor(endTime)
}

// message is a message from the run to its supervisor.
type message struct {
	What  int32
	Value int64 // time limit in nanoseconds, or exit code
}

const (
	tellsLimit = iota
	tellsExit
)

// isControlled reports whether this process is a run with a supervisor.
func isControlled() bool {
	if os.Getenv(controlEnv) == "" {
		return false
	}
	unix.CloseOnExec(controlFD)
	return true
}

// handOverLock passes the lock of the run to the supervisor, with the time limit of the run.
func handOverLock(lock *os.File, limit time.Duration) error {
	if err := sendMessage(message{tellsLimit, int64(limit)}, unix.UnixRights(int(lock.Fd()))); err != nil {
		return fmt.Errorf("cannot hand over the lock of the run: %w", err)
	}
	return lock.Close()
}

// sendMessage sends a message to the supervisor.
func sendMessage(m message, rights []byte) error {
	text, err := binary.Append(nil, binary.NativeEndian, m)
	if err != nil {
		return err
	}
	return unix.Sendmsg(controlFD, text, rights, nil, 0)
}

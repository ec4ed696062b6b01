// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/procfs"
)

// Record says which process holds a sandbox, or a jail's template.
type Record struct {
	Name    string // of the file: SANDBOX; for a zygote, of the jail
	PID     int
	Start   uint64    // clock ticks from boot to the start of the process, proc(5)
	Key     string    // of the jail's configuration, see Config.Key
	Written time.Time // when the process became what it is: a holder was a zygote's spare before
	Alive   bool      // the process was there when the record was read
	Damaged bool      // the file is no record of this version; of another one's there are pid and start, to end the process
}

var recordRule = regexp.MustCompile(`^([0-9]{1,9}) ([0-9]{1,10}) ([0-9]{1,20}) ([0-9a-f]{16})( [0-9]{1,10})?\n$`)

// ReadRecord reads a record and looks for its process. What it cannot make sense of is damaged.
func ReadRecord(path string) Record {
	r := Record{Name: filepath.Base(path), Damaged: true}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return r
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 128))
	m := recordRule.FindStringSubmatch(string(text))
	if err != nil || m == nil {
		return r
	}
	pid, err := strconv.ParseInt(m[2], 10, 32)
	start, err2 := strconv.ParseUint(m[3], 10, 64)
	if err != nil || err2 != nil || pid < 2 || start == 0 {
		return r
	}
	r.PID, r.Start = int(pid), start
	if m[1] != strconv.Itoa(contract.Version) || m[5] == "" {
		return r
	}
	if info, err := f.Stat(); err == nil {
		r.Written = info.ModTime()
	}
	r.Key, r.Damaged = m[4], false
	if pidfd, err := r.openPidfd(); err == nil && pidfd >= 0 {
		unix.Close(pidfd)
		r.Alive = true
	}
	return r
}

// openPidfd gives a pidfd of the record's process (Linux 5.3), or -1 when it is gone.
// With the pidfd at hand, a start time that matches rules out that the pid has
// been given to another process.
func (r Record) openPidfd() (int, error) {
	pidfd, err := unix.PidfdOpen(r.PID, 0)
	if err == unix.ESRCH || err == unix.EINVAL || err == unix.ENOENT {
		return -1, nil // the last two: it is the number of a thread now
	}
	if err != nil {
		return -1, fmt.Errorf("cannot open process %d of %s: %w", r.PID, r.Name, err)
	}
	if start, err := procfs.StartTime(r.PID); err != nil || start != r.Start {
		unix.Close(pidfd)
		return -1, err
	}
	if gone, err := waitForEnd(pidfd, 0); err != nil || gone {
		unix.Close(pidfd)
		return -1, err
	}
	return pidfd, nil
}

// waitForEnd waits for the end of a process: its pidfd becomes readable.
func waitForEnd(pidfd int, patience time.Duration) (bool, error) {
	until := time.Now().Add(patience)
	for {
		left := max(0, time.Until(until))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int((left+time.Millisecond-1)/time.Millisecond))
		if err == unix.EINTR {
			continue
		}
		return n > 0, err
	}
}

// hasReleasedMounts tells whether a process that does not end holds nothing any more. Process 1 of a PID namespace
// waits, as the last thing it does, until the others there are reaped: who is traced from outside
// is reaped when the tracer likes. Its mounts and other namespaces are gone by then (do_exit in the kernel's exit.c).
func (r Record) hasReleasedMounts() bool {
	_, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", r.PID))
	return errors.Is(err, os.ErrNotExist)
}

// Kill kills the record's process and waits for its end.
func (r Record) Kill(patience time.Duration) error {
	pidfd, err := r.openPidfd()
	if err != nil || pidfd < 0 {
		return err
	}
	defer unix.Close(pidfd)
	if err := r.killPidfd(pidfd); err != nil {
		return err
	}
	gone, err := waitForEnd(pidfd, patience)
	if err == nil && !gone && !r.hasReleasedMounts() {
		err = fmt.Errorf("process %d of %s does not end; it may hang in storage", r.PID, r.Name)
	}
	return err
}

// Signal kills the record's process and does not wait.
func (r Record) Signal() error {
	pidfd, err := r.openPidfd()
	if err != nil || pidfd < 0 {
		return err
	}
	defer unix.Close(pidfd)
	return r.killPidfd(pidfd)
}

func (r Record) killPidfd(pidfd int) error {
	if err := unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
		return fmt.Errorf("cannot end process %d of %s: %w", r.PID, r.Name, err)
	}
	return nil
}

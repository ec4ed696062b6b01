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

// Record names the process that holds a sandbox or a jail's template.
type Record struct {
	Name    string // name of the file: SANDBOX; for a zygote, the jail
	PID     int
	Start   uint64    // start of the process in clock ticks since boot, proc(5)
	Key     string    // key of the jail's configuration, see site.Key
	UID     uint32    // owner of the job; 0 for a zygote
	Version string    // version of the gojail that wrote the record; empty if the record does not say
	Written time.Time // when the process took its role: a holder was a zygote's spare before
	Alive   bool      // whether the process existed when the record was read
	// whether the file is no record of this contract; one of another contract has PID and Start, to end the process
	Damaged bool
	foreign bool // whether the record is of another contract
}

var recordRule = regexp.MustCompile(`^([0-9]{1,9}) ([0-9]{1,10}) ([0-9]{1,20}) ([0-9a-f]{16})( [0-9]{1,10})?` +
	`(?: ([0-9][0-9A-Za-z.~+-]{0,31}))?\n$`)

// ReadRecord reads a record and looks for its process. It marks a record that it cannot parse as damaged.
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
	start, startErr := strconv.ParseUint(m[3], 10, 64)
	if err != nil || startErr != nil || pid < 2 || start == 0 {
		return r
	}
	r.PID, r.Start, r.Version = int(pid), start, m[6]
	if info, err := f.Stat(); err == nil {
		r.Written = info.ModTime()
	}
	r.foreign = m[1] != strconv.Itoa(contract.Version)
	if r.foreign || m[5] == "" {
		return r
	}
	uid, err := strconv.ParseUint(m[5][1:], 10, 32)
	if err != nil {
		return r
	}
	r.Key, r.UID, r.Damaged = m[4], uint32(uid), false
	if pidfd, err := r.openPidfd(); err == nil && pidfd >= 0 {
		unix.Close(pidfd)
		r.Alive = true
	}
	return r
}

// openPidfd opens a pidfd of the record's process (Linux 5.3), or returns -1 if it has ended. The start
// time is compared after the open, so the pid cannot belong to another process.
func (r Record) openPidfd() (int, error) {
	pidfd, err := unix.PidfdOpen(r.PID, 0)
	if err == unix.ESRCH || err == unix.EINVAL || err == unix.ENOENT {
		return -1, nil // EINVAL and ENOENT: the number now belongs to a thread
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

// IsForeign reports whether a version of gojail with another contract wrote the record.
func (r Record) IsForeign() bool { return r.foreign }

// Lives reports whether the record's process exists now, whatever version of gojail wrote the record. It returns true
// if that cannot be found out.
func (r Record) Lives() bool {
	if r.PID == 0 {
		return false
	}
	pidfd, err := r.openPidfd()
	if err == nil && pidfd >= 0 {
		unix.Close(pidfd)
	}
	return err != nil || pidfd >= 0
}

// waitForEnd waits until a process ends, which makes its pidfd readable, and reports whether it did.
func waitForEnd(pidfd int, timeout time.Duration) (bool, error) {
	until := time.Now().Add(timeout)
	for {
		left := max(0, time.Until(until))
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}},
			int((left+time.Millisecond-1)/time.Millisecond))
		if err == unix.EINTR {
			continue
		}
		return n > 0, err
	}
}

// hasReleasedMounts reports whether a process that does not end has released its mounts and other namespaces. The last
// action of process 1 of a PID namespace is to wait until the other processes there are reaped, and a tracer outside
// may delay that for its tracee. By then, mounts and other namespaces are released (do_exit in the kernel's exit.c).
func (r Record) hasReleasedMounts() bool {
	_, err := procfs.ReadNamespace(r.PID, "mnt")
	return errors.Is(err, os.ErrNotExist)
}

// Kill kills the record's process and waits until it ends.
func (r Record) Kill(timeout time.Duration) error {
	pidfd, err := r.openPidfd()
	if err != nil || pidfd < 0 {
		return err
	}
	defer unix.Close(pidfd)
	if err := r.killPidfd(pidfd); err != nil {
		return err
	}
	gone, err := waitForEnd(pidfd, timeout)
	if err == nil && !gone && !r.hasReleasedMounts() {
		err = fmt.Errorf("process %d of %s does not end; it may be blocked by storage that hangs", r.PID, r.Name)
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
		return fmt.Errorf("cannot kill process %d of %s: %w", r.PID, r.Name, err)
	}
	return nil
}

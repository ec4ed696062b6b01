// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
)

// kernelLine is one record of the kernel's log that the kernel itself wrote.
type kernelLine struct {
	Record int64         // its number since boot
	Since  time.Duration // since boot
	Text   string
}

// Much of a log can be user programs' own words: only root may write to
// /dev/kmsg, but what it writes there has a facility other than the kernel's, 0.
const facilityKernel = 0

var (
	kernelLogLock sync.Mutex
	kernelLogOf   = map[string][]kernelLine{}
)

// readKernelLog returns the records that the kernel still has, oldest first. Linux
// 3.5; the format is that of Documentation/ABI/testing/dev-kmsg. The device is read
// once in a process: that takes a call for each record, of which there are thousands.
func readKernelLog(path string) ([]kernelLine, error) {
	kernelLogLock.Lock()
	defer kernelLogLock.Unlock()
	if all, known := kernelLogOf[path]; known {
		return all, nil
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kernel's log %s: %w", path, err)
	}
	defer unix.Close(fd)
	if !isDevice(fd) {
		text, err := os.ReadFile(path)
		return splitRecords(string(text)), err
	}
	all, err := readRecords(fd)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kernel's log %s: %w", path, err)
	}
	kernelLogOf[path] = all
	return all, nil
}

func isDevice(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR
}

const recordMost = 8192 // the kernel's limit of one record

func readRecords(fd int) (all []kernelLine, err error) {
	record := make([]byte, recordMost)
	for {
		n, err := unix.Read(fd, record)
		switch {
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EINTR):
			continue // older records were overwritten meanwhile: the next read is at the oldest
		case errors.Is(err, unix.EAGAIN), err == nil && n == 0:
			return all, nil
		case err != nil:
			return nil, err
		}
		if l, ok := parseRecord(string(record[:n])); ok {
			all = append(all, l)
		}
	}
}

func splitRecords(text string) []kernelLine {
	var all []kernelLine
	for row := range strings.Lines(text) {
		if l, ok := parseRecord(row); ok {
			all = append(all, l)
		}
	}
	return all
}

// parseRecord reads "6,1234,567890,-;text"; what follows on further lines are
// properties of the device. Numbers are read by hand: there are thousands of records.
func parseRecord(record string) (kernelLine, bool) {
	head, text, found := strings.Cut(record, ";")
	if !found {
		return kernelLine{}, false
	}
	text, _, _ = strings.Cut(text, "\n")
	priority, rest, _ := strings.Cut(head, ",")
	sequence, rest, _ := strings.Cut(rest, ",")
	stamp, _, _ := strings.Cut(rest, ",")
	level, ok := digits(priority)
	usec, ok2 := digits(stamp)
	number, ok3 := digits(sequence)
	if !ok || !ok2 || !ok3 || level>>3 != facilityKernel {
		return kernelLine{}, false
	}
	return kernelLine{number, time.Duration(usec) * time.Microsecond, text}, true
}

// chosenBy is a line whose beginning a user may have chosen. A process's name has 15
// bytes at most (TASK_COMM_LEN), each of which may be escaped, and stands before what
// the kernel tells of the process: "NAME[PID]: segfault", "NAME (PID): drop_caches",
// "NAME/PID:", "NAME: page allocation failure", "NAME invoked oom-killer". A packet
// that was logged begins with words of the rule, a mount that failed with its source:
// what follows these is longer than a name, so that no name makes a driver's line one.
var chosenBy = regexp.MustCompile(`^(?:[^\\]|\\x[0-9a-f]{2}){0,15}(?:\[\d+\]| \(\d+\)|/\d+|: page allocation failure| invoked oom-killer)` +
	`|IN=[^ ]* OUT=[^ ]* (?:.*SRC=[0-9a-f.:]+ DST=|ARP HTYPE=|MACSRC=|MACPROTO=)|: Can't (?:open|lookup) blockdev`)

// chosen tells whether a line that looks like a driver's can be a user's own words.
// It is asked of few lines.
func chosen(text string) bool { return chosenBy.MatchString(text) }

func digits(text string) (n int64, ok bool) {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' || n > 1<<52 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, text != ""
}

// after leaves out the lines that a check was told to forget.
func after(lines []kernelLine, forgotten check.Forgotten) []kernelLine {
	for i, l := range lines {
		if l.Record > forgotten.Record {
			return lines[i:]
		}
	}
	return nil
}

// ForgetNow is to forget what the kernel's log has so far.
func ForgetNow(r check.Roots) (check.Forgotten, error) {
	lines, err := readKernelLog(r.Kmsg)
	f := check.Forgotten{Record: 1}
	if len(lines) > 0 {
		f.Record = max(1, lines[len(lines)-1].Record)
	}
	return f, err
}

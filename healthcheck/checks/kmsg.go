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

// kernelLine is one message of the kernel's log that the kernel itself wrote.
type kernelLine struct {
	Record int64         // sequence number since boot of its last record
	Since  time.Duration // since boot
	Text   string        // one line; see joinRecords
}

// kernelRecord is one record of the kernel's log.
type kernelRecord struct {
	kernelLine // Text is as in /dev/kmsg, where the kernel writes control characters and backslashes as \xNN
	Level      int64
	Caller     string // task or CPU, "" without CONFIG_PRINTK_CALLER
	Fragment   bool   // printed with KERN_CONT; see lineJoiner.joinFragment
}

// facilityKernel is the facility of the kernel's own records. The log can contain many texts of
// programs: only root may write to /dev/kmsg, and those records have a facility other than 0.
const facilityKernel = 0

var (
	kernelLogLock sync.Mutex
	kernelLogOf   = map[string][]kernelLine{}
)

// readKernelLog returns the records that the kernel still holds, oldest first. It needs Linux
// 3.5; the format is described in Documentation/ABI/testing/dev-kmsg. The device is read once
// per process, since each of its thousands of records takes a system call.
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
		return parseRecords(string(text)), err
	}
	records, err := readRecords(fd)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kernel's log %s: %w", path, err)
	}
	all := joinRecords(records)
	kernelLogOf[path] = all
	return all, nil
}

// isDevice reports whether a descriptor is a character device.
func isDevice(fd int) bool {
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR
}

const recordMost = 8192 // the kernel's limit for one record

func readRecords(fd int) (all []kernelRecord, err error) {
	record := make([]byte, recordMost)
	for {
		n, err := unix.Read(fd, record)
		switch {
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EINTR):
			continue // older records were overwritten; the next read returns the oldest remaining one
		case errors.Is(err, unix.EAGAIN), err == nil && n == 0:
			return all, nil
		case err != nil:
			return nil, err
		}
		if r, ok := parseRecord(string(record[:n])); ok {
			all = append(all, r)
		}
	}
}

func parseRecords(text string) []kernelLine {
	var all []kernelRecord
	for row := range strings.Lines(text) {
		if r, ok := parseRecord(row); ok {
			all = append(all, r)
		}
	}
	return joinRecords(all)
}

// parseRecord parses "6,1234,567890,-,caller=T12;text"; further lines are properties of the
// device. Numbers are parsed by hand, since there are thousands of records.
func parseRecord(record string) (kernelRecord, bool) {
	head, text, found := strings.Cut(record, ";")
	if !found {
		return kernelRecord{}, false
	}
	text, _, _ = strings.Cut(text, "\n")
	priority, rest, _ := strings.Cut(head, ",")
	sequence, rest, _ := strings.Cut(rest, ",")
	stamp, rest, _ := strings.Cut(rest, ",")
	flags, rest, _ := strings.Cut(rest, ",")
	_, caller, _ := strings.Cut(","+rest, ",caller=")
	caller, _, _ = strings.Cut(caller, ",")
	level, ok := parseDigits(priority)
	usec, ok2 := parseDigits(stamp)
	number, ok3 := parseDigits(sequence)
	if !ok || !ok2 || !ok3 || level>>3 != facilityKernel {
		return kernelRecord{}, false
	}
	line := kernelLine{number, time.Duration(usec) * time.Microsecond, text}
	return kernelRecord{line, level & 7, caller, flags == "c" || flags == "+"}, true
}

// userChosen matches a line whose beginning a user may have chosen. The name of a process has
// at most 15 bytes (TASK_COMM_LEN), each of which may be escaped, and precedes the kernel's
// text about the process: "NAME[PID]: segfault", "NAME (PID): drop_caches", "NAME/PID:", "NAME:
// page allocation failure", "NAME invoked oom-killer". The line of a logged packet begins with
// the prefix of the rule, that of a failed mount with its source: the text after these is
// longer than a name, so that no name can turn such a line into one of a driver. A record may
// begin with the name of a cgroup, in the report of an OOM kill that other CPUs' messages cut.
var userChosen = regexp.MustCompile(`^(?:[^\\]|\\x[0-9a-f]{2}){0,15}` +
	`(?:\[\d+\]| \(\d+\)|/\d+|: page allocation failure| invoked oom-killer)` +
	`|IN=[^ ]* OUT=[^ ]* (?:.*SRC=[0-9a-f.:]+ DST=|ARP HTYPE=|MACSRC=|MACPROTO=)|: Can't (?:open|lookup) blockdev` +
	`|,mems_allowed=[0-9-]+(?:,[0-9-]+)*(?:$|,(?:oom_memcg=|global_oom,|task_memcg=))`)

// isUserChosen reports whether a line that looks like a driver's may contain text chosen by a
// user. It is called for few lines.
func isUserChosen(text string) bool { return userChosen.MatchString(text) }

// parseDigits parses a decimal number without sign.
func parseDigits(text string) (n int64, ok bool) {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' || n > 1<<52 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, text != ""
}

// dropForgotten returns the lines after those that a check was told to forget.
func dropForgotten(lines []kernelLine, forgotten check.Forgotten) []kernelLine {
	for i, l := range lines {
		if l.Record > forgotten.Record {
			return lines[i:]
		}
	}
	return nil
}

// ReadForgotten returns the mark that makes a check ignore all current records of the kernel's
// log.
func ReadForgotten(r check.Roots) (check.Forgotten, error) {
	lines, err := readKernelLog(r.Kmsg)
	f := check.Forgotten{Record: 1}
	if len(lines) > 0 {
		f.Record = max(1, lines[len(lines)-1].Record)
	}
	return f, err
}

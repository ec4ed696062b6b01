// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/expression"
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

// readKernelLog gives the records that the kernel still has, oldest first. Linux
// 3.5; the format is that of Documentation/ABI/testing/dev-kmsg. The device is read
// once in a process: that takes a call for each of thousands of records.
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

// The log in one call, syslog(2). A line of it can be a user's own words: the
// device alone escapes line ends, in a mount option for one. So it only serves to
// tell what need not be looked for.
const (
	syslogReadAll    = 3
	syslogSizeUnread = 9
	syslogSizeBuffer = 10
	syslogMost       = 64 << 20
	syslogNewest     = 8 << 10
)

// theWholeLog is nil where it cannot be had so. It has nothing from before a dmesg --clear.
var theWholeLog = sync.OnceValue(func() []byte {
	size, err := unix.Klogctl(syslogSizeBuffer, nil)
	if err != nil || size <= 0 {
		return nil
	}
	text := make([]byte, min(4*size, syslogMost)) // each line has a stamp there that the kernel's buffer has not
	n, err := unix.Klogctl(syslogReadAll, text)
	if err != nil || n <= 0 || n == len(text) {
		return nil
	}
	return text[:n]
})

// theNewestLog is the last lines that fit.
var theNewestLog = sync.OnceValue(func() []byte {
	text := make([]byte, syslogNewest)
	n, _ := unix.Klogctl(syslogReadAll, text)
	return text[:max(n, 0)]
})

// logMark tells at half the cost of reading it that the log is as it was.
type logMark struct {
	Oldest int64 `json:"oldest,omitempty"` // the number of the first record that the kernel still has
	Unread int   `json:"unread,omitempty"` // bytes of what nobody took from /proc/kmsg
}

var theLogMark = sync.OnceValue(readLogMark)

func readLogMark() (mark logMark) {
	fd, err := unix.Open(check.NodeRoots().Kmsg, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return logMark{}
	}
	defer unix.Close(fd)
	record := make([]byte, recordMost)
	n, _ := unix.Read(fd, record) // for how it looks see parseRecord
	_, rest, _ := strings.Cut(string(record[:max(n, 0)]), ",")
	number, _, _ := strings.Cut(rest, ",")
	if mark.Oldest, _ = digits(number); mark.Oldest == 0 && number != "0" {
		return logMark{}
	}
	mark.Unread, _ = unix.Klogctl(syslogSizeUnread, nil)
	return mark
}

// stamps tells whether each line of the log begins with the time, so that no two are the same.
var stamps = sync.OnceValue(func() bool {
	on, _ := sysText("/sys/module/printk/parameters", "time")
	return on == "Y"
})

// seenLog is up to where a check needs not look at the kernel's log any more. The zero
// value is for one that has to look at all of it.
type seenLog struct {
	Mark logMark `json:"mark,omitzero"`  // of the log then, if a change of it changes that
	Line string  `json:"line,omitempty"` // the last one
	For  string  `json:"for,omitempty"`  // who has looked, by which rules: a later version looks for more
}

// mayHave tells whether the kernel's log can have one of the words, after what was seen
// by the same rules: false is certain. If the check then has nothing of it that a later
// run would have to see again, that may begin at next.
func (seen seenLog) mayHave(path, rules string, words ...string) (may bool, next seenLog) {
	if path != check.NodeRoots().Kmsg {
		return true, seenLog{}
	}
	next.For = thisProgram() + " " + rules
	if seen.For != next.For {
		seen = seenLog{}
	}
	mark := theLogMark() // first: what comes meanwhile is in the text, not in the mark
	if mark != (logMark{}) && mark == seen.Mark {
		return false, seen
	}
	text := seen.text(mark)
	if len(text) == 0 {
		return true, seenLog{}
	}
	if mark.Unread == len(text) {
		next.Mark = mark // nobody takes from /proc/kmsg
	}
	next.Line = string(text[bytes.LastIndexByte(text[:len(text)-1], '\n')+1:])
	fresh, found := seen.after(text)
	if !found && mark.Unread > len(text) {
		return true, next // the device has what was cleared
	}
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(fresh, []byte(w)) }), next
}

// text is the log: the newest lines if they have the last that was seen, and the mark
// will not tell anything next time either, else all of it.
func (seen seenLog) text(mark logMark) []byte {
	if mark.Unread == 0 {
		newest := theNewestLog()
		if _, found := seen.after(newest); found {
			return newest
		}
	}
	return theWholeLog()
}

// after is what the text has after the line, or all of it if the line is not there. Each
// line begins with a stamp of the kernel's: none of a user's words is taken for it.
func (seen seenLog) after(text []byte) (fresh []byte, found bool) {
	if seen.Line == "" || !stamps() {
		return text, false
	}
	if fresh, found := bytes.CutPrefix(text, []byte(seen.Line)); found {
		return fresh, true
	}
	if at := bytes.Index(text, []byte("\n"+seen.Line)); at >= 0 {
		return text[at+1+len(seen.Line):], true
	}
	return text, false
}

// thisProgram is its file, which is another one after an upgrade.
var thisProgram = sync.OnceValue(func() string {
	var st unix.Stat_t
	if unix.Stat("/proc/self/exe", &st) != nil {
		return ""
	}
	return fmt.Sprintf("%d/%d/%d", st.Ino, st.Size, st.Mtim.Nano())
})

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
var chosenBy = expression.Of(`^(?:[^\\]|\\x[0-9a-f]{2}){0,15}(?:\[\d+\]| \(\d+\)|/\d+|: page allocation failure| invoked oom-killer)` +
	`|IN=[^ ]* OUT=[^ ]* (?:.*SRC=[0-9a-f.:]+ DST=|ARP HTYPE=|MACSRC=|MACPROTO=)|: Can't (?:open|lookup) blockdev`)

// chosen tells whether a line that looks like a driver's can be a user's own words.
// It is asked of few lines.
func chosen(text string) bool { return chosenBy().MatchString(text) }

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

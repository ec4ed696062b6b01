// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// kernelLine is one record of the kernel's log that the kernel itself wrote.
type kernelLine struct {
	Since time.Duration // since boot
	Text  string
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
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG {
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

func readRecords(fd int) (all []kernelLine, err error) {
	record := make([]byte, 8192) // the kernel's limit of one record
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
	_, rest, _ = strings.Cut(rest, ",")
	stamp, _, _ := strings.Cut(rest, ",")
	level, ok := digits(priority)
	usec, ok2 := digits(stamp)
	if !ok || !ok2 || level>>3 != facilityKernel {
		return kernelLine{}, false
	}
	return kernelLine{Since: time.Duration(usec) * time.Microsecond, Text: text}, true
}

func digits(text string) (n int64, ok bool) {
	for _, c := range []byte(text) {
		if c < '0' || c > '9' || n > 1<<52 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, text != ""
}

// SPDX-License-Identifier: Apache-2.0

// Package procfs reads facts about processes from /proc, mostly from /proc/PID/stat (proc_pid_stat(5)). Reading that
// file never hangs, unlike /proc/PID/cmdline, which waits for a lock that a process stuck in the kernel may hold.
package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Stat is a part of /proc/PID/stat.
type Stat struct {
	Name   string // up to 15 bytes, any bytes
	State  byte   // 'R', 'S', 'D', 'Z' ...
	Kernel bool   // kernel thread
	Start  uint64 // start in clock ticks since boot; identifies a process together with its number
}

// kernelThread is PF_KTHREAD of linux/sched.h, in field 9.
const kernelThread = 0x00200000

// ReadStat reads the stat of a process below proc ("/proc"). found is false if the process does not exist.
func ReadStat(proc string, pid int) (s Stat, found bool, err error) {
	path := filepath.Join(proc, strconv.Itoa(pid), "stat")
	text, err := os.ReadFile(path)
	if HasEnded(err) {
		return s, false, nil
	}
	if err != nil {
		return s, false, fmt.Errorf("cannot read %s: %w", path, errors.Unwrap(err))
	}
	if s, found = ParseStat(text); !found {
		return s, false, fmt.Errorf("cannot parse %s", path)
	}
	return s, true, nil
}

// ParseStat parses the text of the file. The name is between the first and the last
// parenthesis, and may have parentheses and blanks itself.
func ParseStat(text []byte) (s Stat, ok bool) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return s, false
	}
	s.Name = string(text[open+1 : end])
	field := 3
	for word := range bytes.FieldsSeq(text[end+1:]) {
		switch field {
		case 3:
			s.State = word[0]
		case 9:
			flags, err := strconv.ParseUint(string(word), 10, 64)
			s.Kernel = err == nil && flags&kernelThread != 0
		case 22:
			start, err := strconv.ParseUint(string(word), 10, 64)
			s.Start = start
			return s, err == nil
		}
		field++
	}
	return s, false
}

// ReadMeminfo returns the values of /proc/meminfo by their keys: sizes in KiB, and numbers of huge pages
// (proc_meminfo(5)). A line that cannot be parsed is left out. proc is "/proc".
func ReadMeminfo(proc string) (map[string]int64, error) {
	text, err := os.ReadFile(filepath.Join(proc, "meminfo"))
	if err != nil {
		return nil, err
	}
	values := map[string]int64{}
	for row := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(row, ":")
		number, unit, _ := strings.Cut(strings.TrimSpace(value), " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if err == nil && n >= 0 && (unit == "" || unit == "kB") {
			values[key] = n
		}
	}
	return values, nil
}

// ReadMounts reads the mount table of a process by its directory, such as /proc/self (proc_pid_mountinfo(5)). It never
// waits for a server.
func ReadMounts(process string) ([]*mountinfo.Info, error) {
	text, err := os.ReadFile(filepath.Join(process, "mountinfo"))
	if err != nil {
		return nil, err
	}
	return mountinfo.GetMountsFromReader(bytes.NewReader(text), nil)
}

// OpenMounts reads the mount table of a process, and opens its root directory with O_PATH, which the caller closes.
func OpenMounts(process string) (mounts []*mountinfo.Info, root int, err error) {
	if mounts, err = ReadMounts(process); err != nil {
		return nil, -1, err
	}
	root, err = unix.Open(filepath.Join(process, "root"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return mounts, root, err
}

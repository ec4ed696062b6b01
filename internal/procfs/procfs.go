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

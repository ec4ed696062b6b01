// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ReadNamespace returns the name of a process's namespace, for example "mnt:[4026531841]", which no other namespace of
// the kind has at the same time (namespaces(7)).
func ReadNamespace(pid int, kind string) (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
}

// ListNumbers returns the numeric entries of a directory of /proc in ascending order: processes ("/proc"), or the
// threads ("task") or descriptors ("fd") of a process. With an error it returns the entries that were read before.
func ListNumbers(dir string) (numbers []int, err error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	names, err := file.Readdirnames(-1)
	for _, name := range names {
		if number, err := strconv.Atoi(name); err == nil {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, err
}

// ReadName returns the kernel's name of a process, which has up to 15 bytes and which the process can change
// (PR_SET_NAME, prctl(2)), or "" if the process has ended. proc is "/proc".
func ReadName(proc string, pid int) string {
	text, _ := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "comm"))
	return strings.TrimSuffix(string(text), "\n")
}

// LivesIn reports whether a process is in a mount namespace.
func LivesIn(pid int, namespace string) bool {
	name, err := ReadNamespace(pid, "mnt")
	return err == nil && name == namespace
}

// ReadBootID returns the id of the node's current boot; proc is "/proc".
func ReadBootID(proc string) (string, error) {
	text, err := os.ReadFile(filepath.Join(proc, "sys/kernel/random/boot_id"))
	if err != nil {
		return "", fmt.Errorf("cannot read the boot's id: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// SetName sets the name of each thread of this process, which is "exe" after an execve(2) of /proc/self/exe. A later
// thread has the name of the one that starts it. The kernel keeps the first 15 bytes.
func SetName(name string) error {
	files, err := filepath.Glob("/proc/self/task/*/comm")
	for _, file := range files {
		writeErr := os.WriteFile(file, []byte(name), 0)
		if !HasEnded(writeErr) {
			err = errors.Join(err, writeErr)
		}
	}
	return err
}

// StartTime returns the start time of a process in clock ticks since boot, or 0 if there is no such process.
func StartTime(pid int) (uint64, error) {
	s, _, err := ReadStat("/proc", pid)
	return s.Start, err
}

// titleMost is the limit of a title that is read, longer than any slurmstepd's.
const titleMost = 128

// ReadTitle reads the beginning of a process's title: a process may have a title of gigabytes, which need
// not even be in its memory (PR_SET_MM_MAP, prctl(2)).
func ReadTitle(pid int) ([]byte, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, titleMost))
}

// ReadStatus returns the values of keys of /proc/PID/status, such as "Uid", without the blanks around them, or "" for a
// key that is missing (proc_pid_status(5)). The kernel escapes line ends in the name of a process. proc is "/proc".
func ReadStatus(proc string, pid int, keys ...string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "status"))
	if err != nil {
		return nil, err
	}
	values := make([]string, len(keys))
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if i := slices.Index(keys, key); i >= 0 {
			values[i] = strings.TrimSpace(value)
		}
	}
	return values, nil
}

// HasEnded reports whether an error of a file of /proc means that its process has ended.
func HasEnded(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) }

// IsRoots reports whether root started the process, whatever its effective user. The owner of /proc/PID
// does not show that: it is root for every process that is not dumpable.
func IsRoots(pid int) bool { return IsOf(pid, "0") }

// IsOf reports whether a user started the process, like IsRoots.
func IsOf(pid int, uid string) bool {
	status, err := ReadStatus("/proc", pid, "Uid")
	if err != nil {
		return !HasEnded(err) // unknown counts as yes
	}
	real, _, _ := strings.Cut(status[0], "\t")
	return real == uid
}

// SPDX-License-Identifier: Apache-2.0

package filelock

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// describeHolder returns the process that holds the lock of an open file, as "process 12 (gojail)". It returns "another
// process" if that is unknown: /proc/locks has no locks of other nodes, nor of PID namespaces outside this one.
func describeHolder(file *os.File) string {
	const unknown = "another process"
	var st unix.Statx_t
	if err := unix.Statx(int(file.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_INO,
		&st); err != nil {
		return unknown
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return unknown
	}
	defer locks.Close()
	pid := findHolder(locks, fmt.Sprintf("%02x:%02x:%d", st.Dev_major, st.Dev_minor, st.Ino))
	if pid == 0 {
		return unknown
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return fmt.Sprintf("process %d, which has ended meanwhile,", pid)
	}
	return fmt.Sprintf("process %d (%s)", pid, strings.TrimSpace(string(name)))
}

// findHolder returns the process that holds the flock(2) of a file, given as in /proc/locks (proc_locks(5)), or 0.
func findHolder(locks io.Reader, file string) (pid int) {
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		var number, kind, mode, access, of string
		var holder int
		// A line of a process that waits has "->" after its number.
		_, err := fmt.Sscan(lines.Text(), &number, &kind, &mode, &access, &holder, &of)
		if err == nil && kind == "FLOCK" && of == file && holder > 0 {
			return holder
		}
	}
	return 0
}

// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func LivesIn(pid int, namespace string) bool {
	link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	return err == nil && link == namespace
}

// StartTime returns when a process started, in clock ticks since boot, or 0 where there is no such process.
func StartTime(pid int) (uint64, error) {
	s, _, err := readStat("/proc", pid)
	return s.Start, err
}

// titleMost is longer than the title of any slurmstepd.
const titleMost = 128

// ReadTitle reads no more of a process's title than that: any process may have one of gigabytes, which need
// not even be in its memory (PR_SET_MM_MAP, prctl(2)).
func ReadTitle(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, titleMost))
}

// IsRoots tells whether root started the process, whatever user it acts for at this moment. The
// owner of /proc/PID would not tell: it is root for whatever is not to be dumped.
func IsRoots(pid string) bool {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ESRCH) // not knowing counts as yes
	}
	return bytes.Contains(text, []byte("\nUid:\t0\t")) // the real one, proc_pid_status(5)
}

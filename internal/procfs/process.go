// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
)

func LivesIn(pid int, namespace string) bool {
	link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
	return err == nil && link == namespace
}

// StartTime is field 22 of /proc/PID/stat, or 0 when there is no such process.
func StartTime(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("cannot read /proc/%d/stat: %w", pid, oneline.Errno(err))
	}
	// The name in field 2 may hold blanks and brackets: count from its end.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("cannot understand /proc/%d/stat", pid)
	}
	return strconv.ParseUint(fields[22-3], 10, 64)
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

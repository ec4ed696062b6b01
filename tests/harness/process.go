// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// pinToOneCPU keeps the calling thread, and what it starts, on one CPU until the returned function is called.
// Plugins of Slurm bind a mount namespace to a file, which the kernel refuses for a namespace older than
// their own (do_loopback in fs/namespace.c, EINVAL); on Linux 6.18 age is counted for each CPU.
func pinToOneCPU() (back func()) {
	var all, first unix.CPUSet
	runtime.LockOSThread()
	if unix.SchedGetaffinity(0, &all) == nil {
		for cpu := range 1024 {
			if all.IsSet(cpu) {
				first.Set(cpu)
				break
			}
		}
		unix.SchedSetaffinity(0, &first)
	}
	return func() {
		unix.SchedSetaffinity(0, &all)
		runtime.UnlockOSThread()
	}
}

// recordProcess writes the number and the start time of a process, which identify it.
func recordProcess(path string, pid int) error {
	_, start, err := processStat(pid)
	if err != nil {
		return err
	}
	return os.WriteFile(path, fmt.Appendf(nil, "%d %s\n", pid, start), 0o644)
}

// hasEnded reports whether the process of a pidfd has ended (pidfd_open(2)).
func hasEnded(pidfd int) bool {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return n > 0 && err == nil
}

// processStat reads fields 3 and 22 of /proc/PID/stat: the state, and the start
// time in clock ticks since boot (proc(5)).
func processStat(pid int) (state, start string, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", "", err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 20 {
		return "", "", fmt.Errorf("cluster: /proc/%d/stat is short", pid)
	}
	return fields[0], fields[19], nil
}

// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// callsOfNode traces the calls of processes of n1.
type callsOfNode struct {
	t    *testing.T
	c    *harness.Cluster
	seen map[string]bool // files of strace that are evaluated
}

const callsDir = "/tmp/calls"

// traceCalls runs strace on processes and what they fork, until the function that it returns is called.
func traceCalls(t *testing.T, c *harness.Cluster, pids ...int) (stop func()) {
	t.Helper()
	args := []string{"strace", "-ff", "-q", "-s128", "-o", callsDir + "/t"}
	for _, pid := range pids {
		args = append(args, "-p", strconv.Itoa(pid))
	}
	strace := c.Exec(context.Background(), harness.Command{Args: args})
	require.NoError(t, strace.Start())
	for _, pid := range pids {
		require.True(t, harness.Poll(harness.Timeout, func() bool {
			threads, _ := filepath.Glob(c.Path(fmt.Sprintf("/proc/%d/task/*/status", pid)))
			return len(threads) > 0 && !slices.ContainsFunc(threads, func(path string) bool {
				text, err := os.ReadFile(path)
				return err == nil && strings.Contains(string(text), "\nTracerPid:\t0\n")
			})
		}), "strace does not attach")
	}
	return func() {
		require.NoError(t, syscall.Kill(-strace.Process.Pid, syscall.SIGINT))
		_ = strace.Wait()                            // nsenter, which ends by the signal; strace is its child
		patience := time.Now().Add(10 * time.Second) // it waits for a process to stop that may be asleep
		require.True(t, harness.Poll(harness.Timeout, func() bool {
			left := c.Find("strace")
			for _, p := range left {
				if time.Now().After(patience) {
					c.Root("kill", "-KILL", strconv.Itoa(p.Pid)) // the kernel detaches what it traces
				}
			}
			return len(left) == 0
		}), "strace does not end")
	}
}

var callOfLine = regexp.MustCompile(`^(\w+)\(`)

// descriptorWalk matches the call with which slurmstepd opens the list of its descriptors. It then looks at each, and the threads of Slurm have now
// one more, now one less.
var descriptorWalk = regexp.MustCompile(`^openat\(AT_FDCWD, "/proc/self/fd", .* = (\d+)$`)

// countCalls counts the calls of lines by group, but for those of a look at all descriptors.
func countCalls(lines []string) callCounts {
	counts := callCounts{}
	walk := ""
	for _, line := range lines {
		if m := descriptorWalk.FindStringSubmatch(line); m != nil {
			walk = m[1]
		} else if walk != "" {
			if strings.HasPrefix(line, "close("+walk+")") {
				walk = ""
			}
			continue
		}
		m := callOfLine.FindStringSubmatch(line)
		if m == nil || slices.Contains(callsOfSlurm, m[1]) {
			continue
		}
		group := "other"
		for name, calls := range callGroups {
			if slices.Contains(calls, m[1]) {
				group = name
			}
		}
		counts[group]++
	}
	return counts
}

// readCalls returns the lines of a file of strace.
func readCalls(t *testing.T, path string) (lines []string) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		lines = append(lines, scanner.Text())
	}
	return lines
}

// run runs a step, and counts the calls of the first thread of slurmstepd, in which the plugin is called, and of the task before its program.
func (n *callsOfNode) run(args ...string) map[string]callCounts {
	n.t.Helper()
	r := n.c.Run(harness.Alice, append(append([]string{"srun"}, args...), "/bin/true")...)
	require.Zero(n.t, r.Code, r)
	var counts map[string]callCounts
	require.True(n.t, harness.Poll(harness.Timeout, func() bool {
		counts = map[string]callCounts{}
		files, _ := filepath.Glob(n.c.Path(callsDir + "/t.*"))
		for _, path := range files {
			if n.seen[path] {
				continue
			}
			lines := readCalls(n.t, path)
			if len(lines) == 0 || !strings.HasPrefix(lines[len(lines)-1], "+++ exited") {
				continue // it runs
			}
			begun := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "execve(") && strings.HasSuffix(line, " = 0") })
			switch {
			case begun < 0:
			case strings.Contains(lines[begun], `/slurmstepd"]`): // and no words, as those of the end of a job
				counts["slurmstepd"] = countCalls(lines[begun+1:])
			case strings.Contains(lines[begun], `/true"`):
				counts["task"] = countCalls(lines[:begun])
			}
		}
		return len(counts) == 2
	}), "strace has not seen the step")
	files, _ := filepath.Glob(n.c.Path(callsDir + "/t.*"))
	for _, path := range files {
		n.seen[path] = true
	}
	return counts
}

var spareIsReady = regexp.MustCompile(`^sendmsg\(.*iov_base="r"`)

// countUntilReady counts the calls of a spare from its fork until it tells its zygote that it is ready.
func (n *callsOfNode) countUntilReady(spare int) (counts callCounts) {
	n.t.Helper()
	require.True(n.t, harness.Poll(harness.Timeout, func() bool {
		lines := readCalls(n.t, n.c.Path(fmt.Sprintf("%s/t.%d", callsDir, spare)))
		ready := slices.IndexFunc(lines, spareIsReady.MatchString)
		counts = countCalls(lines[:ready+1])
		return ready >= 0
	}), "the spare is not ready")
	return counts
}

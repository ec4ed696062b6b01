// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// callGroups are the groups that the bounds are for. What no group has is in the last one, "other".
var callGroups = map[string][]string{
	"descriptors": {"openat", "openat2", "open_tree", "close", "dup", "dup2", "dup3", "pidfd_open", "pidfd_getfd", "memfd_create"},
	"attributes":  {"newfstatat", "statx", "fstatfs", "faccessat2", "access", "fcntl", "getdents64", "getcwd", "readlinkat", "lseek", "ioctl", "flock"},
	"changes": {"mkdir", "mkdirat", "unlink", "unlinkat", "rmdir", "linkat", "symlinkat", "renameat", "mknodat", "fchmodat", "fchownat", "quotactl_fd",
		"fsopen", "fsconfig", "fsmount", "move_mount", "mount_setattr", "umount2", "pivot_root"},
	"rights":    {"geteuid", "setresuid", "getpid", "gettid", "prctl", "capget", "capset", "seccomp", "setns", "unshare", "landlock_restrict_self"},
	"processes": {"clone", "clone3", "vfork", "fork", "execve", "wait4", "waitid", "kill", "pidfd_send_signal", "setsid"},
	"messages":  {"socket", "socketpair", "connect", "accept4", "bind", "listen", "sendto", "sendmsg", "recvfrom", "recvmsg", "pipe2"},
}

// callsOfSlurm are those that are made now more, now less often: memory, locks, what waits or reads in parts, and the look at mounts once a second.
var callsOfSlurm = []string{"read", "pread64", "write", "futex", "poll", "restart_syscall", "mmap", "munmap", "mprotect", "madvise", "brk", "rt_sigprocmask",
	"rt_sigaction", "clock_nanosleep", "sched_yield", "pause", "rt_sigreturn", "exit", "exit_group"}

// callCounts are numbers of system calls by group.
type callCounts map[string]int

// callBounds are how many system calls more than a step without a jail a process may make at most. Whoever raises one says in the commit what
// the step gets for it. What a later step makes is the same each time, but for two calls; a first step looks at its storage and waits for replies, now
// with one or two calls more.
var callBounds = []struct {
	step, process string
	most          callCounts
}{
	// The counters, the filter, the sandbox's record and 2 of its descriptors; which files Slurm has opened; the ways into the stage and out of it, twice;
	// the job's PID namespace for the task's fork; the job's cgroups; whether Slurm has mpi/pmix or mpi/cray_shasta (2); at the end, what is open is
	// closed.
	{"later", "slurmstepd", callCounts{"descriptors": 22, "attributes": 11, "rights": 29}},
	// What its stdin, stdout and stderr are; 29 attempts to drop a capability, no_new_privs, the filter, three namespaces at once.
	{"later", "task", callCounts{"attributes": 4, "rights": 34}},
	// A job's directory, its lock, four records and notes; the request and its replies; what the job has of its own; the line in the journal.
	{"first", "slurmstepd", callCounts{"descriptors": 56, "attributes": 17, "changes": 13, "messages": 10, "rights": 30, "other": 3}},
	{"first", "task", callCounts{"attributes": 4, "rights": 34}},
	// The spare that becomes the holder, from the request on.
	{"first", "builder", callCounts{"descriptors": 32, "attributes": 11, "changes": 5, "messages": 9, "rights": 7, "other": 2}},
	// The next spare, from its fork until it is ready, while nobody waits: the masks of /proc, which each sandbox has anew, are 60.
	{"first", "next spare", callCounts{"descriptors": 127, "attributes": 66, "changes": 64, "messages": 2, "rights": 8, "processes": 2, "other": 1}},
}

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

// callRounds are how often each step runs: what a thread of Slurm's adds now and then is not the plugin's.
const callRounds = 5

// sortCounts returns the counts of the rounds for a group of calls of a process, in ascending order.
func sortCounts(rounds []map[string]callCounts, process, group string) (all []int) {
	for _, round := range rounds {
		all = append(all, round[process][group])
	}
	slices.Sort(all)
	return all
}

// TestCallsOfAStep: a step in a jail makes no more system calls beyond those of a step without than callBounds says.
func TestCallsOfAStep(t *testing.T) {
	if harness.Version() != "22.05" {
		t.Skip("needs Slurm 22.05, of which the bounds are")
	}
	c := sharedCluster(t)
	if c.Root("which", "strace").Code != 0 {
		t.Skip("needs strace in the machine: make deps")
	}
	require.Zero(t, c.Root("mkdir", "-m700", callsDir).Code)
	defer c.Root("rm", "-r", callsDir)
	// A template whose root was changed within the seconds before is not known to be of that root: each first step asks the zygote.
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		var root syscall.Stat_t
		return syscall.Stat(c.Path("/srv/jails/debian"), &root) == nil && time.Since(time.Unix(root.Ctim.Unix())) > 4*time.Second // what gojail takes for a change that may go on is one of the last 2 s (SETTLED_S in identity.c)
	}), "the jail's root is new")
	assembleTemplates(t, c)
	require.Zero(t, c.Gojail("n1", "reload", "debian").Code)
	require.Zero(t, c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "/bin/true").Code)
	slurmd, err := strconv.Atoi(strings.TrimSpace(readFile(c, "/run/slurm/slurmd-n1.pid")))
	require.NoError(t, err)

	n := &callsOfNode{t, c, map[string]bool{}}
	rounds := map[string][]map[string]callCounts{}
	r := c.Run(harness.Alice, "salloc", "--no-shell", "-wn1")
	m := regexp.MustCompile(`Granted job allocation (\d+)`).FindStringSubmatch(r.Stderr)
	require.NotNil(t, m, r)
	id := m[1]
	defer c.Run(harness.Alice, "scancel", id)
	require.Zero(t, c.Run(harness.Alice, "srun", "--jobid="+id, "--jail=debian", "/bin/true").Code)
	stop := traceCalls(t, c, slurmd)
	for range callRounds {
		rounds["none"] = append(rounds["none"], n.run("--jobid="+id, "--jail=none"))
		rounds["later"] = append(rounds["later"], n.run("--jobid="+id, "--jail=debian"))
	}
	stop()
	r = c.Run(harness.Alice, "scancel", id)
	require.Zero(t, r.Code, r)
	for range callRounds {
		require.Equal(t, "idle", waitForState(c, "n1"))
		zygote := readRecordPid(t, c, "jails/debian/zygote")
		spare := findSpare(t, c, zygote)
		stop := traceCalls(t, c, slurmd, spare, zygote)
		of := n.run("-wn1", "--jail=debian")
		require.Equal(t, "idle", waitForState(c, "n1"))
		next := findSpare(t, c, zygote)
		of["next spare"] = n.countUntilReady(next)
		stop()
		of["builder"] = countCalls(readCalls(t, c.Path(fmt.Sprintf("%s/t.%d", callsDir, spare))))
		rounds["first"] = append(rounds["first"], of)
	}
	for _, bound := range callBounds {
		for _, group := range append(slices.Collect(maps.Keys(callGroups)), "other") {
			none := sortCounts(rounds["none"], bound.process, group)[callRounds/2]
			beyond := sortCounts(rounds[bound.step], bound.process, group)[0] - none
			t.Logf("%s of a %s step: %s: %d calls beyond %d", bound.process, bound.step, group, beyond, none)
			assert.LessOrEqual(t, beyond, bound.most[group], "%s of a %s step: %s", bound.process, bound.step, group)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"maps"
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

// callBound is how many calls more than a step without a jail a process may make at most.
type callBound struct {
	step, process string
	most          callCounts
}

// callBounds are how many system calls more than a step without a jail a process may make at most. Whoever raises one says in the commit what
// the step gets for it. What a later step makes is the same each time, but for two calls; a first step looks at its storage and waits for replies, now
// with one or two calls more.
var callBounds = []callBound{
	// The counters, the filter, the sandbox's record and 2 of its descriptors; which files Slurm has opened; the ways into the stage and out of it, twice;
	// the job's PID namespace for the task's fork; the job's cgroups; whether Slurm has mpi/pmix or mpi/cray_shasta (2); at the end, what would keep
	// the jail's storage or a network busy is closed.
	{"later", "slurmstepd", callCounts{"descriptors": 20, "attributes": 11, "rights": 24}},
	// What its stdin, stdout and stderr are; 29 attempts to drop a capability, no_new_privs, the filter, three namespaces at once.
	{"later", "task", callCounts{"attributes": 4, "rights": 33}},
	// A job's directory, its lock, four records and notes; the request and its replies; what the job has of its own; the line in the journal.
	{"first", "slurmstepd", callCounts{"descriptors": 54, "attributes": 17, "changes": 13, "messages": 10, "rights": 25, "other": 3}},
	{"first", "task", callCounts{"attributes": 4, "rights": 33}},
	// The spare that becomes the holder, from the request on.
	{"first", "builder", callCounts{"descriptors": 31, "attributes": 10, "changes": 5, "messages": 9, "rights": 7, "other": 2}},
	// The next spare, from its fork until it is ready, while nobody waits: six new file systems are 34, the masks of /proc, which each sandbox has anew,
	// 8, and the template's /proc, /sys, /dev and /run, which must be where they were mounted, 18.
	{"first", "next spare", callCounts{"descriptors": 45, "attributes": 17, "changes": 54, "messages": 2, "rights": 8, "processes": 2, "other": 1}},
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

// needBounds skips the test with other releases of Slurm than the bounds are of.
func needBounds(t *testing.T) {
	t.Helper()
	if harness.Version() != "22.05" {
		t.Skip("needs Slurm 22.05, of which the bounds are")
	}
}

// startCalls prepares n1 for a count: strace is there, the template is, and it was made of a root that had been left alone for seconds. Else it is not
// known to be of that root, and each first step asks the zygote. It returns the pid of slurmd.
func startCalls(t *testing.T, c *harness.Cluster) (slurmd int) {
	t.Helper()
	if c.Root("which", "strace").Code != 0 {
		t.Skip("needs strace in the machine: make deps")
	}
	require.Zero(t, c.Root("mkdir", "-m700", callsDir).Code)
	t.Cleanup(func() { c.Root("rm", "-r", callsDir) })
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		var root syscall.Stat_t
		return syscall.Stat(c.Path("/srv/jails/debian"), &root) == nil && time.Since(time.Unix(root.Ctim.Unix())) > 4*time.Second // what gojail takes for a change that may go on is one of the last 2 s (SETTLED_S in identity.c)
	}), "the jail's root is new")
	assembleTemplates(t, c)
	require.Zero(t, c.Gojail("n1", "reload", "debian").Code)
	require.Zero(t, c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "/bin/true").Code)
	slurmd, err := strconv.Atoi(strings.TrimSpace(readFile(c, "/run/slurm/slurmd-n1.pid")))
	require.NoError(t, err)
	return slurmd
}

// callsByStep are the counts of the rounds of a step, by the name that callBounds has for it.
type callsByStep map[string][]map[string]callCounts

// countLater counts steps of a job that has a sandbox, with and without the jail.
func (n *callsOfNode) countLater(slurmd int, job, step string, rounds callsByStep) {
	n.t.Helper()
	require.True(n.t, harness.Poll(harness.Timeout, func() bool {
		return n.c.Run(harness.Alice, "squeue", "-h", "-j", job, "-o", "%T").Stdout == "RUNNING\n"
	}), "the job does not start")
	r := n.c.Run(harness.Alice, "srun", "--overlap", "--jobid="+job, "--jail=debian", "/bin/true")
	require.Zero(n.t, r.Code, r)
	stop := traceCalls(n.t, n.c, slurmd)
	for range callRounds {
		rounds["none"] = append(rounds["none"], n.run("--overlap", "--jobid="+job, "--jail=none"))
		rounds[step] = append(rounds[step], n.run("--overlap", "--jobid="+job, "--jail=debian"))
	}
	stop()
	require.Zero(n.t, n.c.Run(harness.Alice, "scancel", job).Code)
}

// countFirst counts first steps, with a spare.
func (n *callsOfNode) countFirst(slurmd int, rounds callsByStep) {
	n.t.Helper()
	for range callRounds {
		require.Equal(n.t, "idle", waitForState(n.c, "n1"))
		zygote := readRecordPid(n.t, n.c, "jails/debian/zygote")
		spare := findSpare(n.t, n.c, zygote)
		stop := traceCalls(n.t, n.c, slurmd, spare, zygote)
		of := n.run("-wn1", "--jail=debian")
		require.Equal(n.t, "idle", waitForState(n.c, "n1"))
		of["next spare"] = n.countUntilReady(findSpare(n.t, n.c, zygote))
		stop()
		of["builder"] = countCalls(readCalls(n.t, n.c.Path(fmt.Sprintf("%s/t.%d", callsDir, spare))))
		rounds["first"] = append(rounds["first"], of)
	}
}

// compareCalls compares the counts with bounds.
func compareCalls(t *testing.T, rounds callsByStep, bounds []callBound) {
	t.Helper()
	for _, bound := range bounds {
		for _, group := range append(slices.Collect(maps.Keys(callGroups)), "other") {
			none := sortCounts(rounds["none"], bound.process, group)[callRounds/2]
			beyond := sortCounts(rounds[bound.step], bound.process, group)[0] - none
			t.Logf("%s of a %s step: %s: %d calls beyond %d", bound.process, bound.step, group, beyond, none)
			assert.LessOrEqual(t, beyond, bound.most[group], "%s of a %s step: %s", bound.process, bound.step, group)
		}
	}
}

// allocateNode returns a new job of alice's on n1.
func allocateNode(t *testing.T, c *harness.Cluster) (job string) {
	t.Helper()
	r := c.Run(harness.Alice, "salloc", "--no-shell", "-wn1")
	m := regexp.MustCompile(`Granted job allocation (\d+)`).FindStringSubmatch(r.Stderr)
	require.NotNil(t, m, r)
	t.Cleanup(func() { c.Run(harness.Alice, "scancel", m[1]) })
	return m[1]
}

// TestCallsOfAStep: a step in a jail makes no more system calls beyond those of a step without than callBounds says.
func TestCallsOfAStep(t *testing.T) {
	needBounds(t)
	c := sharedCluster(t)
	n, rounds := &callsOfNode{t, c, map[string]bool{}}, callsByStep{}
	slurmd := startCalls(t, c)
	n.countLater(slurmd, allocateNode(t, c), "later", rounds)
	n.countFirst(slurmd, rounds)
	compareCalls(t, rounds, callBounds)
}

// callBoundsInCgroups are callBounds where Slurm keeps jobs in cgroups, which the jail shows. A later step that is the job's only one at the moment
// finds new cgroups to show, one beside a batch script those that are there.
var callBoundsInCgroups = []callBound{
	{"later", "slurmstepd", callCounts{"descriptors": 47, "attributes": 15, "changes": 2, "rights": 24, "processes": 2}},
	{"first", "slurmstepd", callCounts{"descriptors": 80, "attributes": 19, "changes": 15, "messages": 10, "rights": 25, "processes": 2, "other": 3}},
	{"batch", "slurmstepd", callCounts{"descriptors": 34, "attributes": 15, "rights": 24}},
}

// TestCallsOfAStepInCgroups: the same as TestCallsOfAStep, but for what does not depend on cgroups.
func TestCallsOfAStepInCgroups(t *testing.T) {
	needBounds(t)
	c := harness.Start(t, accountedOptions())
	n := &callsOfNode{t, c, map[string]bool{}}
	rounds, beside := callsByStep{}, callsByStep{}
	slurmd := startCalls(t, c)
	n.countLater(slurmd, allocateNode(t, c), "later", rounds)
	n.countFirst(slurmd, rounds)
	n.countLater(slurmd, submitScript(t, c, "sleep 1000\n", "--jail=debian", "-wn1", "--output=/dev/null"), "batch", beside)
	compareCalls(t, rounds, callBoundsInCgroups[:2])
	compareCalls(t, beside, callBoundsInCgroups[2:])
}

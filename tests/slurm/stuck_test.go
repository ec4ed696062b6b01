// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/harness"
)

// stuckRow is a fault of processes that launches wait for.
type stuckRow struct {
	name    string
	who     []string // processes of the template of debian on n1
	fault   func(t *testing.T, c *harness.Cluster, pids []int) (undo func())
	seen    bool // `gojail ls` and `gojail check` name it
	replace bool // the next first step replaces the zygote
}

var stuckRows = []stuckRow{
	{"zygote stopped", []string{"zygote"}, stopProcesses, true, true},
	{"spare stopped", []string{"spare"}, stopProcesses, true, true},
	{"zygote and spare stopped", []string{"zygote", "spare"}, stopProcesses, true, true},
	{"zygote stopped with a full queue", []string{"zygote", "spare"}, stopAndFillQueue, true, true},
	{"both frozen", []string{"zygote", "spare"}, freezeProcesses, true, true},
	{"zygote killed", []string{"zygote"}, killAll, false, true},
	{"spare killed", []string{"spare"}, killAll, false, false},
	{"zygote answers garbage", []string{"zygote"}, impersonateZygote, false, true},
}

// TestStuckProcesses: whichever process of a template is stopped, frozen or killed, steps of a running job go on, the
// next first step works and replaces it, the stuck process does not live on, and who looks at the node sees it before
// that.
func TestStuckProcesses(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	for _, row := range stuckRows {
		t.Run(row.name, func(t *testing.T) {
			c.ShowLogs(t)
			step, id := allocate(t, c)
			requireOutput(t, "debian", step("cat "+marker+"; touch /tmp/mine"))
			zygote := readRecordPid(t, c, "jails/debian/zygote")
			pids := findTemplateProcesses(t, c, zygote, row.who)
			undo := row.fault(t, c, pids)
			defer undo()

			requireSeen(t, c, zygote, row.seen)
			requireOutput(t, "debian\n/tmp/mine", step("cat "+marker+"; ls /tmp/mine"))
			for range 3 { // where only the zygote is stopped, the first of them has its spare
				requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
			}
			assert.Equal(t, row.replace, readRecordPid(t, c, "jails/debian/zygote") != zygote, "the zygote was replaced")
			undo()
			if row.replace {
				requireEnded(t, c, append(pids, zygote))
			}
			requireSeen(t, c, readRecordPid(t, c, "jails/debian/zygote"), false)
			requireOutput(t, "debian\n/tmp/mine", step("cat "+marker+"; ls /tmp/mine"))
			requireOneZygote(t, c, "n1")
			c.Run(harness.Alice, "scancel", id)
			// The command line of a launcher has the zygote that it replaces.
			require.Zero(t, c.Gojail("n1", "reload", "debian").Code)
			assembleTemplates(t, c)
			requireNothingLeft(t, c, before)
		})
	}
}

// TestManyLaunchesReplaceOneZygote: of many launches that wait for a stuck zygote one replaces it, once, and all work.
func TestManyLaunchesReplaceOneZygote(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	zygote := readRecordPid(t, c, "jails/debian/zygote")
	pids := findTemplateProcesses(t, c, zygote, []string{"zygote", "spare"})
	stopProcesses(t, c, pids)
	var group sync.WaitGroup
	for range 12 {
		group.Go(func() {
			requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "-s", "--jail=debian", "cat", marker))
		})
	}
	group.Wait()
	now, err := c.Process(readRecordPid(t, c, "jails/debian/zygote"))
	require.NoError(t, err)
	assert.Contains(t, now.Command, fmt.Sprintf(" replace=%d:", zygote), "it replaced the first one, and was not replaced itself")
	requireEnded(t, c, pids)
	require.Zero(t, c.Gojail("n1", "reload", "debian").Code)
	assembleTemplates(t, c)
	requireNothingLeft(t, c, before)
}

// TestStuckZygoteOfEachAsk: each way to ask for a sandbox replaces a stuck zygote.
func TestStuckZygoteOfEachAsk(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	for name, ask := range map[string]func() string{
		"sbatch": func() string {
			return c.Batch(harness.Alice, "cat "+marker, "-wn1", "--jail=debian").Output
		},
		"--jail-mount": func() string {
			return c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-mount=/data:/mnt", "cat", marker).Stdout
		},
		"gojail run": func() string {
			return c.Gojail("n1", "run", "debian", "-u", "nobody", "--", "cat", marker).Stdout
		},
	} {
		t.Run(name, func(t *testing.T) {
			zygote := readRecordPid(t, c, "jails/debian/zygote")
			pids := findTemplateProcesses(t, c, zygote, []string{"zygote", "spare"})
			stopProcesses(t, c, pids)
			assert.Equal(t, "debian\n", ask())
			requireEnded(t, c, pids)
			require.Zero(t, c.Gojail("n1", "reload", "debian").Code)
			assembleTemplates(t, c)
			requireNothingLeft(t, c, before)
		})
	}
}

// TestSlowZygoteStays: one that answers late, but in time, is not replaced.
func TestSlowZygoteStays(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	zygote := readRecordPid(t, c, "jails/debian/zygote")
	goOn := stopProcesses(t, c, findTemplateProcesses(t, c, zygote, []string{"zygote", "spare"}))
	result := make(chan harness.Result)
	go func() { result <- c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker) }()
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("slurmstepd: [")) > 0 }))
	goOn()
	requireOutput(t, "debian", <-result)
	assert.Equal(t, zygote, readRecordPid(t, c, "jails/debian/zygote"))
	requireNothingLeft(t, c, before)
}

// lockHolder is a launcher that is stopped while it assembles a template, and whose deadline passed a while ago.
const lockHolder = `
use Fcntl ":flock";
sub first { open(my $f, "<", $_[0]) or die; my $line = <$f>; return $line; }
open(my $lock, "+<", "/run/gojail/n1/jails/debian/lock") or die;
flock($lock, LOCK_EX) or die;
my $start = (split " ", (split /.*\)/, first("/proc/self/stat"))[1])[19];
truncate($lock, 0);
syswrite($lock, sprintf("%d %s %d\n", $$, $start, first("/proc/uptime") * 1000 - 5000));
open(my $told, ">", "/run/gojail-locked") or die;
syswrite($told, "$$");
sleep(1000);
`

// TestLateBuilderEnds: a launcher that is stopped while it has the lock of a template, and whose caller has ended,
// does not keep others from assembling it once its deadline has passed.
func TestLateBuilderEnds(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	forget := func() { c.Root("rm", "-f", "/run/gojail-locked", "/run/gojail-lock.pl") }
	forget()
	defer forget()
	require.NoError(t, os.WriteFile(c.Path("/run/gojail-lock.pl"), []byte(lockHolder), 0o600))
	require.Zero(t, c.Root("sh", "-c", "setsid perl /run/gojail-lock.pl </dev/null >/dev/null 2>&1 &").Code)
	var pid int
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		pid, _ = strconv.Atoi(readFile(c, "/run/gojail-locked"))
		return pid > 0
	}))
	stopProcesses(t, c, []int{pid})
	defer signalProcesses(c, "-KILL", []int{pid})
	c.Root("kill", "-KILL", strconv.Itoa(readRecordPid(t, c, "jails/debian/zygote")))
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
	requireEnded(t, c, []int{pid})
	assert.Empty(t, readFile(c, "/run/gojail/n1/jails/debian/lock"))
	forget()
	requireNothingLeft(t, c, before)
}

// findTemplateProcesses returns the processes of that zygote.
func findTemplateProcesses(t *testing.T, c *harness.Cluster, zygote int, who []string) (pids []int) {
	t.Helper()
	for _, name := range who {
		switch name {
		case "zygote":
			pids = append(pids, zygote)
		case "spare":
			spare := findSpare(t, c, zygote)
			require.True(t, harness.Poll(harness.Timeout, func() bool { // it sleeps when it is prepared
				p, err := c.Process(spare)
				return err == nil && strings.HasPrefix(p.Status["State"], "S")
			}))
			pids = append(pids, spare)
		}
	}
	return pids
}

// requireSeen requires that `gojail ls` and `gojail check` name a stuck zygote, or that they do not.
func requireSeen(t *testing.T, c *harness.Cluster, zygote int, seen bool) {
	t.Helper()
	list := c.Gojail("n1", "ls").Stdout
	assert.Equal(t, seen, strings.Contains(list, " stuck "), list)
	checked := c.Gojail("n1", "check").Stdout
	says := fmt.Sprintf("WARN  jail debian: its zygote does not answer; the next step that needs it replaces it "+
		"(process %d, state ", zygote)
	assert.Equal(t, seen, strings.Contains(checked, says), checked)
}

// requireEnded requires that processes of a template that was replaced are gone.
func requireEnded(t *testing.T, c *harness.Cluster, pids []int) {
	t.Helper()
	for _, pid := range pids {
		hasEnded := func() bool { _, err := c.Process(pid); return err != nil }
		assert.True(t, harness.Poll(harness.Timeout, hasEnded), "process %d lives on", pid)
	}
}

// signalProcesses sends a signal to processes, as long as they exist.
func signalProcesses(c *harness.Cluster, signal string, pids []int) {
	for _, pid := range pids {
		c.Root("kill", signal, strconv.Itoa(pid))
	}
}

// stopProcesses stops processes, until undo.
func stopProcesses(t *testing.T, c *harness.Cluster, pids []int) func() {
	signalProcesses(c, "-STOP", pids)
	for _, pid := range pids {
		require.True(t, harness.Poll(harness.Timeout, func() bool {
			p, err := c.Process(pid)
			return err == nil && strings.HasPrefix(p.Status["State"], "T")
		}))
	}
	return func() { signalProcesses(c, "-CONT", pids) }
}

// killAll kills processes.
func killAll(t *testing.T, c *harness.Cluster, pids []int) func() {
	signalProcesses(c, "-KILL", pids)
	requireEnded(t, c, pids)
	return func() {}
}

// stopAndFillQueue stops processes, and fills the queue of the zygote's socket.
func stopAndFillQueue(t *testing.T, c *harness.Cluster, pids []int) func() {
	undo := stopProcesses(t, c, pids)
	dir, err := os.Open(c.Path("/run/gojail/n1/jails/debian"))
	require.NoError(t, err)
	defer dir.Close()
	var callers []int
	for {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		require.NoError(t, err)
		callers = append(callers, fd)
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("/proc/self/fd/%d/socket", dir.Fd())})
		if err == unix.EAGAIN {
			break
		}
		require.NoError(t, err)
	}
	return func() {
		undo()
		for _, fd := range callers {
			unix.Close(fd)
		}
		callers = nil
	}
}

// impersonateZygote answers each caller of the zygote with garbage, until the zygote is replaced.
func impersonateZygote(t *testing.T, c *harness.Cluster, _ []int) func() {
	dir, err := os.Open(c.Path("/run/gojail/n1/jails/debian"))
	require.NoError(t, err)
	defer dir.Close()
	address := net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/.garbage", dir.Fd()), Net: "unixpacket"}
	listener, err := net.ListenUnix("unixpacket", &address)
	require.NoError(t, err)
	listener.SetUnlinkOnClose(false)
	require.NoError(t, unix.Renameat(int(dir.Fd()), ".garbage", int(dir.Fd()), "socket"))
	go func() {
		for {
			caller, err := listener.Accept()
			if err != nil {
				return
			}
			caller.Write([]byte("garbage"))
			caller.Close()
		}
	}()
	return func() { listener.Close() }
}

// freezeProcesses freezes processes in a cgroup of their own, until undo.
func freezeProcesses(t *testing.T, c *harness.Cluster, pids []int) func() {
	group := "gojail-stuck-" + strconv.Itoa(os.Getpid())
	set := "if [ -e /sys/fs/cgroup/cgroup.procs ]; then g=/sys/fs/cgroup/" + group + " f=cgroup.freeze on=1 off=0; " +
		"else g=/sys/fs/cgroup/freezer/" + group + " f=freezer.state on=FROZEN off=THAWED; fi; "
	if r := c.Root("sh", "-c", set+"mkdir $g"); r.Code != 0 {
		t.Skip("needs a freezer: " + r.Stderr)
	}
	moves := ""
	for _, pid := range pids {
		moves += fmt.Sprintf("echo %d >$g/cgroup.procs && ", pid)
	}
	r := c.Root("sh", "-c", set+moves+"echo $on >$g/$f")
	undo := func() {
		c.Root("sh", "-c", set+"[ ! -e $g ] || { echo $off >$g/$f; until rmdir $g; do sleep 0.1; done; }")
	}
	if !assert.Zero(t, r.Code, r) {
		undo()
		t.FailNow()
	}
	return undo
}

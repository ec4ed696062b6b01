// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/state/statetest"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/procfs"
)

// newSweep is a node with its own directories and a FAKE squeue: a shell script
// that has the answer for each job in answers, and fails as the real one does
// for a job that it does not know. It writes down its environment and arguments.
func newSweep(t *testing.T, answers map[string]string) (*sweep, string) {
	t.Helper()
	dir := t.TempDir()
	s := newNode(t)
	for _, name := range []string{"scratch/jobs", "spool", "conf"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	script := "#!/bin/sh\nenv > " + dir + "/env\necho \"$@\" >> " + dir + "/asked\ncase \"$7\" in\n"
	for job, answer := range answers {
		script += job + ") " + answer + ";;\n"
	}
	script += "*) echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1;;\nesac\n"
	require.NoError(t, os.WriteFile(dir+"/fake-squeue", []byte(script), 0o700))
	return &sweep{state: s, config: newSweepConfig(dir), squeue: dir + "/fake-squeue", ask: true, begun: time.Now().Add(time.Hour)}, dir
}

func newSweepConfig(dir string) *config.Config {
	return &config.Config{Node: "n1", Scratch: dir + "/scratch", Slurm: config.Slurm{Conf: dir + "/conf", Spool: dir + "/spool"}}
}

func (s *sweep) addJob(t *testing.T, job string) {
	t.Helper()
	statetest.AddRecord(t, s.state, "jobs/"+job+"/small", "rubbish")
	require.NoError(t, os.MkdirAll(s.config.Scratch+"/jobs/"+job+"/tmp", 0o700))
}

func TestSweepAsksTheController(t *testing.T) {
	nstest.NoLeaks(t)
	w, dir := newSweep(t, map[string]string{
		"4000000020": "echo 4000000020 COMPLETED",
		"4000000021": "echo 4000000021 RUNNING",
		"4000000022": "echo 4000000022 COMPLETING",
		"4000000023": "echo 4000000023 PENDING",
		"4000000024": "true",
		"4000000025": "echo 4000000024 COMPLETED",
		"4000000026": "echo 4000000026 COMPLETED; echo 4000000027 RUNNING",
		"4000000027": "echo 4000000027 STRANGE_NEW_STATE",
		"4000000028": "echo 4000000028 CANCELLED",
	})
	for _, job := range []string{"4000000019", "4000000020", "4000000021", "4000000022", "4000000023", "4000000024", "4000000025", "4000000026", "4000000027", "4000000028"} {
		w.addJob(t, job)
	}
	require.NoError(t, os.MkdirAll(dir+"/scratch/jobs/4000000030/tmp", 0o700), "scratch alone")
	require.NoError(t, os.MkdirAll(dir+"/scratch/jobs/mine", 0o700), "no job")
	allocated := filepath.Join(w.state.Path(), contract.AllocatedDir)
	require.NoError(t, os.Mkdir(allocated, 0o700))
	for _, job := range []string{"4000000021", "4000000028", "4000000031", ".4000000032"} {
		require.NoError(t, os.WriteFile(filepath.Join(allocated, job), nil, 0o600))
	}
	report, err := w.run()
	require.NoError(t, err)
	assert.Equal(t, []string{"4000000019", "4000000020", "4000000026", "4000000028", "4000000030", "4000000031"}, report.Removed)
	assert.Equal(t, []string{"4000000021"}, w.state.Allocated())
	assert.Equal(t, []string{
		"job 4000000021: it is RUNNING", "job 4000000022: it is COMPLETING", "job 4000000023: it is PENDING", "job 4000000024: squeue does not list it",
		"job 4000000025: squeue does not list it", "job 4000000027: it is STRANGE_NEW_STATE",
	}, report.Kept)
	for _, job := range []string{"4000000021", "4000000022", "4000000023", "4000000024", "4000000025", "4000000027"} {
		assert.FileExists(t, w.state.JobDir(job)+"/small")
		assert.DirExists(t, dir+"/scratch/jobs/"+job+"/tmp")
	}
	for _, job := range report.Removed {
		assert.NoDirExists(t, w.state.JobDir(job))
		assert.NoDirExists(t, dir+"/scratch/jobs/"+job)
	}
	assert.DirExists(t, dir+"/scratch/jobs/mine")

	asked, err := os.ReadFile(dir + "/asked")
	require.NoError(t, err)
	assert.Contains(t, string(asked), "-h -t all -o %A %T -j 4000000021\n")
	env, err := os.ReadFile(dir + "/env")
	require.NoError(t, err)
	assert.Contains(t, string(env), "SLURM_CONF="+dir+"/conf/slurm.conf\n")
	assert.NotContains(t, string(env), "HOME=")
}

// Without a definite answer everything stays, and a controller that does not answer is asked once.
func TestSweepWithoutAController(t *testing.T) {
	for name, answer := range map[string]string{
		"unreachable": "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1",
		"killed":      "kill -9 $$",
	} {
		w, dir := newSweep(t, map[string]string{"4000000020": answer})
		w.addJob(t, "4000000020")
		w.addJob(t, "4000000021")
		report, err := w.run()
		require.NoError(t, err, name)
		assert.Empty(t, report.Removed, name)
		require.Len(t, report.Kept, 2, name)
		assert.Contains(t, report.Kept[0], "job 4000000020: cannot ask whether it ended: "+dir+"/fake-squeue: ", name)
		assert.Equal(t, "job 4000000021: slurmctld did not answer for an earlier job", report.Kept[1], name)
		asked, err := os.ReadFile(dir + "/asked")
		require.NoError(t, err)
		assert.NotContains(t, string(asked), "-j 4000000021", name)
	}
	w, _ := newSweep(t, nil)
	w.squeue = ""
	w.addJob(t, "4000000020")
	report, err := w.run()
	require.NoError(t, err)
	assert.Equal(t, []string{"job 4000000020: cannot ask whether it ended: no squeue on this node"}, report.Kept)
}

func TestSweepHungController(t *testing.T) {
	w, dir := newSweep(t, map[string]string{"4000000020": "exec sleep 1000"})
	w.addJob(t, "4000000020")
	before := time.Now()
	report, err := w.run()
	require.NoError(t, err)
	assert.Less(t, time.Since(before), squeueDeadline+time.Minute)
	assert.Equal(t, "job 4000000020: cannot ask whether it ended: "+dir+"/fake-squeue does not answer in time", report.Kept[0])
}

// A job whose slurmstepd lives is not asked about, and not touched.
func TestSweepFindsStepds(t *testing.T) {
	nstest.NoLeaks(t)
	w, dir := newSweep(t, nil)
	for _, job := range []string{"4000000001", "4000000002", "4000000003", "4000000004"} {
		w.addJob(t, job)
	}
	live, err := net.Listen("unix", dir+"/spool/n1_4000000001.0")
	require.NoError(t, err)
	defer live.Close()
	dead, err := net.Listen("unix", dir+"/spool/n1_4000000002.4294967291")
	require.NoError(t, err)
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	nstest.WriteFile(t, dir+"/spool/n1_4000000002.5", "no socket")
	other, err := net.Listen("unix", dir+"/spool/n2_4000000002.0")
	require.NoError(t, err)
	defer other.Close()
	stepd := exec.Command(linkSleep(t, "slurmstepd"), "1000")
	stepd.Args[0] = "slurmstepd: [4000000003.batch]"
	require.NoError(t, stepd.Start())
	defer func() { stepd.Process.Kill(); stepd.Wait() }()

	report, err := w.run()
	require.NoError(t, err)
	assert.Equal(t, []string{"4000000002", "4000000004"}, report.Removed)
	assert.Equal(t, []string{
		"job 4000000001: its step 0 runs on this node",
		"job 4000000003: its step batch runs on this node",
	}, report.Kept)
}

// A user's process can give itself any title, and be one that is not to be dumped: then its files in /proc are root's.
func TestSweepIsNotKeptByTitles(t *testing.T) {
	nstest.NeedRoot(t)
	w, _ := newSweep(t, nil)
	w.addJob(t, "4000000001")
	for _, undumpable := range []bool{false, true} {
		user := exec.Command(linkSleep(t, "slurmstepd"), "1000")
		user.Args[0] = "slurmstepd: [4000000001.0]"
		user.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if undumpable { // its own program can be executed, but not read
			text, err := os.ReadFile(user.Path)
			require.NoError(t, err)
			dir, err := os.MkdirTemp("", "gojail-test-")
			require.NoError(t, err)
			t.Cleanup(func() { os.RemoveAll(dir) })
			require.NoError(t, os.Chmod(dir, 0o755))
			user.Path = dir + "/slurmstepd"
			require.NoError(t, os.WriteFile(user.Path, text, 0o700))
			require.NoError(t, os.Chmod(user.Path, 0o111))
		}
		require.NoError(t, user.Start())
		t.Cleanup(func() { user.Process.Kill(); user.Wait() })
		titles, err := listStepdTitles()
		require.NoError(t, err)
		assert.Empty(t, titles["4000000001"])
	}
	report, err := w.run()
	require.NoError(t, err)
	assert.Equal(t, []string{"4000000001"}, report.Removed)
}

// A job that comes back between the controller's answer and the lock is left alone.
func TestSweepLooksAgainUnderTheLock(t *testing.T) {
	w, dir := newSweep(t, nil)
	w.addJob(t, "4000000020")
	why, err := w.findReasonToKeep("4000000020", true)
	require.NoError(t, err)
	require.Empty(t, why)
	stepd, err := net.Listen("unix", dir+"/spool/n1_4000000020.0")
	require.NoError(t, err)
	defer stepd.Close()
	err = w.tearDown("4000000020", true)
	var back *inUseError
	require.True(t, errors.As(err, &back))
	assert.Equal(t, "its step 0 runs on this node", back.why)
	assert.Equal(t, "batch", formatStepName("4294967291"))
	assert.FileExists(t, w.state.JobDir("4000000020")+"/small")
}

func TestSweepOfRuns(t *testing.T) {
	w, dir := newSweep(t, nil)
	live := fmt.Sprintf("run-%d", os.Getpid())
	w.addJob(t, live)
	dead := exec.Command("true")
	require.NoError(t, dead.Run())
	gone := fmt.Sprintf("run-%d", dead.Process.Pid)
	w.addJob(t, gone)
	require.NoError(t, os.MkdirAll(dir+"/scratch/jobs/run-1/tmp", 0o700), "of before a boot: the pid is another's")
	report, err := w.run()
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{gone, "run-1"}, report.Removed)
	assert.Equal(t, []string{fmt.Sprintf("job %s: gojail run (process %d) is running", live, os.Getpid())}, report.Kept)
}

// TestSweepOfLogins requires that the sandbox of a user's sessions stays while a session, its watcher or a process uses it.
func TestSweepOfLogins(t *testing.T) {
	nstest.NeedRoot(t)
	w, _ := newSweep(t, nil)
	lock := func(job, name string) {
		held, err := filelock.Try(filepath.Join(w.state.JobDir(job), name))
		require.NoError(t, err)
		t.Cleanup(func() { held.Close() })
		require.NoError(t, filelock.ShareFile(held))
	}
	for _, job := range []string{"login-1", "login-2", "login-3", "login-4", "login-5", "login-6"} {
		w.addJob(t, job)
	}
	lock("login-1", contract.SessionsLock)
	lock("login-2", contract.WatcherLock)
	inside := exec.Command("sh", "-c", "unshare -m sleep 1000 & exec sleep 1000")
	inside.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	require.NoError(t, inside.Start())
	t.Cleanup(func() { inside.Process.Kill(); inside.Wait() })
	require.Eventually(t, func() bool { return (holderOrZygote{state.Record{PID: inside.Process.Pid}, true}).isInhabited() }, time.Minute, time.Millisecond)
	statetest.AddRecord(t, w.state, "jobs/login-3/small", statetest.RecordOf(t, inside.Process.Pid))
	_, others, _ := strings.Cut(statetest.RecordOf(t, inside.Process.Pid), " ")
	statetest.AddRecord(t, w.state, "jobs/login-5/small", "1 "+others) // another version of gojail wrote it
	const show = `set -e; mkdir -p "$0"; mount --make-rprivate /; mount --bind "$0" /mnt; exec setpriv --reuid=6 --clear-groups sleep 1000`
	orphan := exec.Command("sh", "-c", show, w.config.Scratch+"/jobs/login-6/tmp") // its holder has ended
	orphan.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	require.NoError(t, orphan.Start())
	t.Cleanup(func() { orphan.Process.Kill(); orphan.Wait() })
	require.Eventually(t, func() bool { return procfs.IsOf(orphan.Process.Pid, "6") }, time.Minute, time.Millisecond)

	report, err := w.run()
	require.NoError(t, err)
	assert.Equal(t, []string{"login-4"}, report.Removed)
	assert.Equal(t, []string{"job login-1: a session uses it", "job login-2: it stays a while after the last session", "job login-3: processes are in it", "job login-5: processes are in it", "job login-6: processes are in it"}, report.Kept)
	for _, job := range []string{"login-1", "login-3", "login-5", "login-6"} {
		require.NoError(t, EndLogin(w.state, w.config.Scratch, job, soon()))
		assert.FileExists(t, w.state.JobDir(job)+"/small")
		assert.DirExists(t, w.config.Scratch+"/jobs/"+job)
	}
	require.NoError(t, EndLogin(w.state, w.config.Scratch, "login-2", soon()))
	assert.NoDirExists(t, w.state.JobDir("login-2"), "its watcher ends it")
	assert.NoDirExists(t, w.config.Scratch+"/jobs/login-2")
	assert.ErrorContains(t, EndLogin(w.state, w.config.Scratch, "17", soon()), `"17" is not the name of a login sandbox`)
}

func TestSweepOfZygotes(t *testing.T) {
	nstest.NoLeaks(t)
	w, _ := newSweep(t, nil)
	w.config.Jails = map[string]*config.Jail{"alive": {Name: "alive"}}
	statetest.AddRecord(t, w.state, "jails/alive/zygote", statetest.RecordOf(t, statetest.Sleeper(t).Process.Pid))
	statetest.AddRecord(t, w.state, "jails/gone/zygote", fmt.Sprintf(strconv.Itoa(contract.Version)+" %d 1 %s 0\n", os.Getpid(), statetest.Key))
	statetest.AddRecord(t, w.state, "jails/damaged/zygote", "rubbish")
	statetest.AddRecord(t, w.state, "jails/busy/zygote", "rubbish")
	statetest.AddRecord(t, w.state, "jails/made/lock", "")
	unlock, err := filelock.Lock(w.state.JailDir("busy")+"/lock", time.Now())
	require.NoError(t, err)
	report, err := w.run()
	unlock()
	require.NoError(t, err)
	assert.Equal(t, []string{"damaged", "gone"}, report.Zygotes)
	assert.FileExists(t, w.state.ZygoteRecord("alive"))
	assert.FileExists(t, w.state.ZygoteRecord("busy"))
	assert.NoFileExists(t, w.state.ZygoteRecord("gone"))
}

// One job that cannot be torn down does not keep the others from it.
func TestSweepGoesOn(t *testing.T) {
	w, _ := newSweep(t, nil)
	w.addJob(t, "4000000020")
	w.addJob(t, "4000000021")
	lock, err := lockJob(w.state, "4000000020", time.Now())
	require.NoError(t, err)
	defer lock.Close()
	report, err := w.run()
	assert.ErrorContains(t, err, "job 4000000020: a step of the job is being built")
	assert.Equal(t, []string{"4000000021"}, report.Removed)
}

func TestSweepOfAnEmptyNode(t *testing.T) {
	nstest.NeedRoot(t)
	s := newNode(t)
	report, err := Sweep(s, &config.Config{Node: "n1", Scratch: t.TempDir() + "/absent", Slurm: config.Slurm{Spool: "/no/such"}})
	require.NoError(t, err)
	assert.Equal(t, SweepReport{scratch: report.scratch}, report)
}

// TestSweepEndsUnusedZygotes: of jails that were taken out of the configuration.
func TestSweepEndsUnusedZygotes(t *testing.T) {
	w, _ := newSweep(t, nil)
	used, unused := statetest.Sleeper(t), statetest.Sleeper(t)
	w.config.Jails = map[string]*config.Jail{"small": {Name: "small"}}
	statetest.AddRecord(t, w.state, "jails/small/zygote", statetest.RecordOf(t, used.Process.Pid))
	statetest.AddRecord(t, w.state, "jails/gone/zygote", statetest.RecordOf(t, unused.Process.Pid))
	report, err := w.run()
	require.NoError(t, err)
	assert.Equal(t, []string{"gone"}, report.Unused)
	assert.EqualError(t, unused.Wait(), "signal: killed")
	assert.NoFileExists(t, w.state.ZygoteRecord("gone"))
	assert.NoError(t, used.Process.Signal(syscall.Signal(0)))
	assert.FileExists(t, w.state.ZygoteRecord("small"))
}

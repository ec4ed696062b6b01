// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/state/statetest"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/procfs"
	"github.com/gojail/gojail/internal/rmtree"
	"github.com/gojail/gojail/internal/rootpath"
)

func soon() time.Time { return time.Now().Add(time.Minute) }

func TestTeardownFollowsTheNoteOfTheScratchDirectory(t *testing.T) {
	s, scratch, before := newNode(t), t.TempDir(), t.TempDir()
	statetest.AddRecord(t, s, "jobs/17/lock", "")
	require.NoError(t, os.MkdirAll(before+"/jobs/17/tmp", 0o700))
	require.NoError(t, os.Symlink(before+"/jobs/17", s.Path()+"/jobs/17/.scratch"))
	require.NoError(t, Teardown(s, scratch, "17", soon()))
	assert.NoDirExists(t, before+"/jobs/17")
	assert.NoDirExists(t, s.Path()+"/jobs/17")
}

func TestTeardown(t *testing.T) {
	nstest.NoLeaks(t)
	s, scratch := newNode(t), t.TempDir()
	holder, other := statetest.Sleeper(t), statetest.Sleeper(t)
	start, err := procfs.StartTime(other.Process.Pid)
	require.NoError(t, err)
	statetest.AddRecord(t, s, "jobs/17/lock", "")
	statetest.AddRecord(t, s, "jobs/17/small", statetest.RecordOf(t, holder.Process.Pid))
	statetest.AddRecord(t, s, "jobs/17/small.json", "{}")
	statetest.AddRecord(t, s, "jobs/17/recycled", fmt.Sprintf(strconv.Itoa(contract.Version)+" %d %d %s 0\n", other.Process.Pid, start-1, statetest.Key))
	statetest.AddRecord(t, s, "jobs/17/damaged", "rubbish")
	statetest.AddRecord(t, s, "jobs/18/small", statetest.RecordOf(t, other.Process.Pid))
	require.NoError(t, os.MkdirAll(scratch+"/jobs/17/tmp/a/b", 0o700))
	require.NoError(t, os.MkdirAll(scratch+"/jobs/18/tmp", 0o700))
	nstest.WriteFile(t, scratch+"/jobs/17/tmp/a/b/file", "x")

	require.NoError(t, Teardown(s, scratch, "17", soon()))
	assert.NoDirExists(t, s.Path()+"/jobs/17")
	assert.NoDirExists(t, scratch+"/jobs/17")
	assert.EqualError(t, holder.Wait(), "signal: killed")
	assert.NoError(t, other.Process.Signal(syscall.Signal(0)), "a process that only has the pid is left alone")
	assert.DirExists(t, scratch+"/jobs/18/tmp")
	assert.FileExists(t, s.Path()+"/jobs/18/small")

	require.NoError(t, Teardown(s, scratch, "17", soon()), "twice")
	require.NoError(t, Teardown(s, scratch, "99", soon()), "unknown")
	assert.NoDirExists(t, s.Path()+"/jobs/99")
}

func TestTeardownOfScratchAlone(t *testing.T) {
	nstest.NoLeaks(t)
	s, scratch := newNode(t), t.TempDir()
	require.NoError(t, os.MkdirAll(scratch+"/jobs/17/tmp", 0o700))
	require.NoError(t, Teardown(s, scratch, "17", soon()))
	assert.NoDirExists(t, scratch+"/jobs/17")
	assert.NoDirExists(t, s.Path()+"/jobs/17")
}

func TestTeardownRefusesNames(t *testing.T) {
	s, scratch := newNode(t), t.TempDir()
	for _, name := range []string{"", ".", "..", "17/../18", "/", "run-", "a", "17 "} {
		assert.EqualError(t, Teardown(s, scratch, name, soon()), fmt.Sprintf("%q is not a job id", name))
	}
}

// A step that is being built holds the lock: nothing is touched.
func TestTeardownUnderALock(t *testing.T) {
	nstest.NoLeaks(t)
	s, scratch := newNode(t), t.TempDir()
	statetest.AddRecord(t, s, "jobs/17/small", "rubbish")
	lock, err := lockJob(s, "17", time.Now())
	require.NoError(t, err)
	err = Teardown(s, scratch, "17", soon())
	assert.EqualError(t, err, "job 17: a step of the job is being built ("+s.Path()+"/jobs/17/lock is locked); try again")
	assert.FileExists(t, s.Path()+"/jobs/17/small")
	lock.Close()
	assert.NoError(t, Teardown(s, scratch, "17", soon()))
}

// A lock whose file has gone while it was waited for is not taken for one.
func TestLockIsNotAStaleFile(t *testing.T) {
	s := newNode(t)
	first, err := lockJob(s, "17", time.Now())
	require.NoError(t, err)
	defer first.Close()
	require.NoError(t, os.RemoveAll(s.JobDir("17")))
	second, err := lockJob(s, "17", time.Now())
	require.NoError(t, err)
	defer second.Close()
	assert.True(t, isSameFile(second, s.Path()+"/jobs/17/lock"))
	assert.False(t, isSameFile(first, s.Path()+"/jobs/17/lock"))
}

// What cannot be removed stays in the trash and is tried again.
func TestTeardownKeepsWhatItCannotUndo(t *testing.T) {
	nstest.NoLeaks(t)
	out := map[string]string{}
	require.NoError(t, nstest.RunText(t, "teardownMount", t.TempDir(), &out))
	assert.Regexp(t, `^job 17: cannot remove .*/jobs/.trash/17\.\d+/tmp/mounted\?\[2J: a file system is mounted there; unmount it$`, out["first"], "the name is a user's")
	assert.Equal(t, "<nil>", out["other"], "another job's end has no part in it")
	assert.Regexp(t, `^\[\] cannot remove .*/tmp/mounted\?\[2J: a file system is mounted there; unmount it$`, out["sweep"])
	assert.Equal(t, "precious", out["precious"], "mounts are not crossed")
	assert.Equal(t, "[] <nil> false", out["last"])
}

func init() { nstest.Actions["teardownMount"] = teardownMountChild }

func teardownMountChild(dir string) (any, error) {
	if err := nstest.MakePrivate(); err != nil {
		return nil, err
	}
	s, err := state.OpenState(dir + "/state")
	if err != nil {
		return nil, err
	}
	made := dir + "/scratch/jobs/17/tmp/mounted\x1b[2J"
	at := func() string {
		moved, _ := filepath.Glob(dir + "/scratch/jobs/.trash/17.*/tmp/mounted*")
		return moved[0]
	}
	os.MkdirAll(made, 0o700)
	os.MkdirAll(dir+"/elsewhere/full", 0o700)
	os.MkdirAll(s.JobDir("17"), 0o700)
	os.WriteFile(dir+"/elsewhere/full/file", []byte("precious"), 0o600)
	if err := unix.Mount(dir+"/elsewhere", made, "", unix.MS_BIND, ""); err != nil {
		return nil, err
	}
	out := map[string]string{"first": fmt.Sprint(Teardown(s, dir+"/scratch", "17", soon()))}
	os.MkdirAll(dir+"/scratch/jobs/18/tmp", 0o700)
	out["other"] = fmt.Sprint(Teardown(s, dir+"/scratch", "18", soon()))
	report := SweepReport{scratch: []string{dir + "/scratch/jobs"}}
	left, err := report.EmptyTrash(soon())
	out["sweep"] = fmt.Sprint(left, " ", err)
	text, _ := os.ReadFile(dir + "/elsewhere/full/file")
	out["precious"] = string(text)
	if err := unix.Unmount(at(), 0); err != nil {
		return nil, err
	}
	left, err = report.EmptyTrash(soon())
	out["last"] = fmt.Sprint(left, " ", err, " ", isPresent(dir+"/scratch/jobs/.trash"))
	return out, nil
}

// When time is up the job is gone, and its files are for whoever comes next.
func TestTeardownLeavesTrashToTheNext(t *testing.T) {
	nstest.NoLeaks(t)
	s, scratch := newNode(t), t.TempDir()
	for _, job := range []string{"17", "18"} {
		statetest.AddRecord(t, s, "jobs/"+job+"/.uid", "5001\n")
		require.NoError(t, os.MkdirAll(scratch+"/jobs/"+job+"/tmp/a", 0o700))
		nstest.WriteFile(t, scratch+"/jobs/"+job+"/tmp/a/file", "x")
	}
	require.NoError(t, Teardown(s, scratch, "17", time.Now()))
	assert.NoDirExists(t, s.Path()+"/jobs/17")
	assert.NoDirExists(t, scratch+"/jobs/17")
	left, err := filepath.Glob(scratch + "/jobs/.trash/17.*/tmp/a/file")
	require.NoError(t, err)
	require.Len(t, left, 1)

	// Its id comes again, and the same happens.
	require.NoError(t, os.MkdirAll(scratch+"/jobs/17/tmp/a", 0o700))
	require.NoError(t, Teardown(s, scratch, "17", time.Now()))
	w := &sweep{state: s, config: &config.Config{Scratch: scratch}}
	report, err := w.run()
	require.NoError(t, err)
	names, err := report.EmptyTrash(time.Now())
	require.NoError(t, err)
	require.Len(t, names, 2)
	assert.Contains(t, names[0], "/jobs/.trash/17.")
	assert.Contains(t, names[0], " in time: it is large, or a process keeps writing to it; run: gojail sweep")

	// Two do not meet.
	trash, err := rootpath.OpenDirectory(unix.AT_FDCWD, scratch+"/jobs/.trash", 0)
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(trash.Fd()), unix.LOCK_EX))
	names, err = report.EmptyTrash(time.Now().Add(200 * time.Millisecond)) // it waits for the other so long
	require.NoError(t, err)
	assert.Equal(t, []string{scratch + "/jobs/.trash: another process is emptying it"}, names)
	trash.Close()

	require.NoError(t, Teardown(s, scratch, "18", soon()))
	entries, err := os.ReadDir(scratch + "/jobs")
	require.NoError(t, err)
	assert.Empty(t, entries)
}

// On a disk that is full no directory can be made: the job's own is removed where it is.
func TestTeardownWithoutATrash(t *testing.T) {
	s, scratch := newNode(t), t.TempDir()
	statetest.AddRecord(t, s, "jobs/17/lock", "")
	require.NoError(t, os.MkdirAll(scratch+"/jobs/17/tmp/a", 0o700))
	nstest.WriteFile(t, scratch+"/jobs/.trash", "no directory")
	assert.ErrorIs(t, Teardown(s, scratch, "17", time.Now()), rmtree.ErrTimeIsUp)
	assert.DirExists(t, s.Path()+"/jobs/17", "it stays recorded")
	assert.ErrorContains(t, Teardown(s, scratch, "17", soon()), "/jobs/.trash: not a directory")
	assert.NoDirExists(t, scratch+"/jobs/17")
	assert.NoDirExists(t, s.Path()+"/jobs/17")
}

// TestEmptyTrashTakesTurns: a job that left very many files keeps nobody else's.
func TestEmptyTrashTakesTurns(t *testing.T) {
	parent := t.TempDir()
	for _, name := range []string{"17.1/tmp", "18.1/tmp", "19.1/tmp"} {
		require.NoError(t, os.MkdirAll(parent+"/"+trashName+"/"+name, 0o700))
		nstest.WriteFile(t, parent+"/"+trashName+"/"+name+"/file", "x")
	}
	// Somebody creates files in the first one until the others are removed.
	dir, err := unix.Open(parent+"/"+trashName+"/17.1/tmp", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(dir)
	begun, ended := make(chan int, 1), make(chan bool)
	go func() {
		defer close(ended)
		for i := 0; rootpath.Exists(parent+"/"+trashName+"/18.1") || rootpath.Exists(parent+"/"+trashName+"/19.1"); i++ {
			if unix.Symlinkat("x", dir, strconv.Itoa(i)) != nil {
				return // the directory is removed: it went faster
			}
			if i == 1000 {
				begun <- i
			}
		}
	}()
	<-begun
	assert.Empty(t, emptyTrash(parent, "17", soon(), false))
	require.NoError(t, os.RemoveAll(parent+"/"+trashName))
	<-ended
}

// newNode is a node with an empty state directory.
func newNode(t *testing.T) *state.State {
	t.Helper()
	nstest.NeedRoot(t)
	s, err := state.OpenState(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	return s
}

// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state/statetest"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/procfs"
	"github.com/gojail/gojail/internal/version"
)

func TestOpenState(t *testing.T) {
	nstest.NeedRoot(t)
	dir := t.TempDir()
	s, err := OpenState(dir + "/made")
	require.NoError(t, err)
	info, err := os.Stat(s.Path())
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	_, err = OpenState(dir + "/made")
	assert.NoError(t, err, "twice")

	nstest.Symlink(t, dir+"/made", dir+"/link")
	nstest.WriteFile(t, dir+"/file", "")
	require.NoError(t, os.Mkdir(dir+"/open", 0o700))
	require.NoError(t, os.Chmod(dir+"/open", 0o777))
	require.NoError(t, os.Mkdir(dir+"/theirs", 0o700))
	require.NoError(t, os.Chown(dir+"/theirs", 54321, 0))
	for name, want := range map[string]string{
		"link":   "is not a directory; remove it",
		"file":   "is not a directory; remove it",
		"open":   "can be written by others than root; run: chown root PATH; chmod 700 PATH",
		"theirs": "can be written by others than root; run: chown root PATH; chmod 700 PATH",
	} {
		_, err := OpenState(filepath.Join(dir, name))
		assert.EqualError(t, err, "the state directory "+filepath.Join(dir, name)+" "+strings.ReplaceAll(want, "PATH", filepath.Join(dir, name)))
	}
	_, err = OpenState(dir + "/no/such")
	assert.EqualError(t, err, "cannot create the state directory "+dir+"/no/such: no such file or directory")
}

func TestRecords(t *testing.T) {
	nstest.NoLeaks(t)
	s := newState(t)
	live := statetest.Sleeper(t)
	pid := live.Process.Pid
	start, err := procfs.StartTime(pid)
	require.NoError(t, err)
	dead := exec.Command("true")
	require.NoError(t, dead.Run())

	for name, text := range map[string]string{
		"live":      statetest.RecordOf(t, pid),
		"silent":    fmt.Sprintf(strconv.Itoa(contract.Version)+" %d %d %s 0\n", pid, start, statetest.Key),
		"dead":      fmt.Sprintf(strconv.Itoa(contract.Version)+" %d 5 %s 0\n", dead.Process.Pid, statetest.Key),
		"recycled":  fmt.Sprintf(strconv.Itoa(contract.Version)+" %d %d %s 0\n", pid, start+1, statetest.Key),
		"empty":     "",
		"garbage":   "\x00\xff not a record",
		"cut":       fmt.Sprintf(strconv.Itoa(contract.Version)+" %d %d %s 0", pid, start, statetest.Key),
		"trailing":  statetest.RecordOf(t, pid) + "x",
		"escape":    fmt.Sprintf(strconv.Itoa(contract.Version)+" %d %d %s 0 0\x1b[m\n", pid, start, statetest.Key),
		"no user":   fmt.Sprintf(strconv.Itoa(contract.Version)+" %d %d %s\n", pid, start, statetest.Key),
		"version":   fmt.Sprintf("1 %d %d %s\n", pid, start, statetest.Key),
		"other":     fmt.Sprintf("1 %d %d %s 0 0.0.9\n", pid, start, statetest.Key),
		"init":      fmt.Sprintf(strconv.Itoa(contract.Version)+" 1 %d %s 0\n", start, statetest.Key),
		"negative":  fmt.Sprintf(strconv.Itoa(contract.Version)+" -5 %d %s 0\n", start, statetest.Key),
		"overflow":  fmt.Sprintf(strconv.Itoa(contract.Version)+" 4294967297 %d %s 0\n", start, statetest.Key),
		"lock":      "",
		"live.json": "{}", "live.mounts": "/a", "live.storage": "1 ok\n",
		".live.new": "half",
	} {
		statetest.AddRecord(t, s, "jobs/17/"+name, text)
	}
	nstest.Symlink(t, "live", s.path+"/jobs/17/symlink")
	require.NoError(t, os.Mkdir(s.path+"/jobs/17/directory", 0o700))
	require.NoError(t, os.Mkdir(s.path+"/jobs/not-a-job", 0o700))

	jobs, err := s.Jobs()
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	assert.Equal(t, "17", jobs[0].ID)
	seen, versions := map[string]string{}, map[string]string{}
	var foreign []string
	for _, r := range jobs[0].Sandboxes {
		versions[r.Name] = r.Version
		if r.IsForeign() {
			foreign = append(foreign, r.Name)
		}
		seen[r.Name] = map[bool]string{true: "damaged"}[r.Damaged] + map[bool]string{true: "alive"}[r.Alive]
	}
	assert.Equal(t, map[string]string{
		"live": "alive", "silent": "alive", "escape": "damaged", "dead": "", "recycled": "", "empty": "damaged", "garbage": "damaged", "cut": "damaged",
		"trailing": "damaged", "no user": "damaged", "version": "damaged", "other": "damaged", "init": "damaged", "negative": "damaged", "overflow": "damaged",
		"symlink": "damaged", "directory": "damaged",
	}, seen)
	assert.Equal(t, version.Text(), versions["live"])
	assert.Empty(t, versions["silent"])
	assert.Equal(t, "0.0.9", versions["other"])
	assert.ElementsMatch(t, []string{"version", "other"}, foreign)
}

// A zombie holds nothing.
func TestRecordOfAZombie(t *testing.T) {
	s := newState(t)
	cmd := statetest.Sleeper(t)
	text := statetest.RecordOf(t, cmd.Process.Pid)
	statetest.AddRecord(t, s, "jails/small/zygote", text)
	zygotes, err := s.Zygotes()
	require.NoError(t, err)
	require.Len(t, zygotes, 1)
	assert.True(t, zygotes[0].Alive)
	assert.Equal(t, "small", zygotes[0].Name)
	assert.WithinDuration(t, time.Now(), zygotes[0].Written, time.Minute, "the record's time: its process can be days older")
	root, err := s.TemplateRoot("small")
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("/proc/%d/root", cmd.Process.Pid), root)

	require.NoError(t, cmd.Process.Kill())
	require.Eventually(t, func() bool {
		zygotes, err := s.Zygotes()
		return err == nil && !zygotes[0].Alive
	}, time.Minute, 5*time.Millisecond)
	_, err = s.TemplateRoot("small")
	assert.EqualError(t, err, "jail small has no template on this node at the moment; try again")
}

func TestScratchOfTheSite(t *testing.T) {
	s := newState(t)
	assert.Empty(t, s.Scratch())
	statetest.AddRecord(t, s, "site", "gojail-site 1\ndeadline 1\nscratch /local/n1\nend\n")
	assert.Equal(t, "/local/n1", s.Scratch())
	statetest.AddRecord(t, s, "site", "gojail-site 1\ndeadline 1\nscratch /local/n1\n")
	assert.Empty(t, s.Scratch(), "cut")
	statetest.AddRecord(t, s, "site", "gojail-site 1\nscratch ../x\nend\n")
	assert.Empty(t, s.Scratch())
}

// newState is an empty state directory.
func newState(t *testing.T) *State {
	t.Helper()
	nstest.NeedRoot(t)
	s, err := OpenState(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	return s
}

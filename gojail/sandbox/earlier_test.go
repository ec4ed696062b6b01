// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state/statetest"
	"github.com/gojail/gojail/internal/nstest"
)

// TestEndEarlier says for everything that has the number of a job what a later job of that number finds afterwards.
func TestEndEarlier(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: directories of other users")
	}
	nstest.NoLeaks(t)
	const job, own, other = "4000000040", 5001, 5002
	now := time.Now()
	for name, row := range map[string]struct {
		owner   string    // what .uid says, "": there is none
		record  uint32    // whose sandbox it is, 0: there is none
		scratch int       // whose the scratch directory is, 0: there is none
		stepd   bool      // a slurmstepd of the number runs
		ended   bool      // the end of the earlier job was tried and failed
		begun   time.Time // when the present job began, for its Prolog
		lives   bool      // a process is in the sandbox
		gone    bool      // what was there is removed
		fails   bool
	}{
		"nothing":                               {},
		"nothing, for the Prolog":               {begun: now},
		"another user's sandbox":                {owner: "5002\n", record: other, scratch: other, ended: true, gone: true},
		"another user's, of another version":    {owner: "5002\n", gone: true},
		"another user's record":                 {owner: "5001\n", record: other, gone: true},
		"another user's files":                  {scratch: other, gone: true},
		"another user's files beside own":       {owner: "5001\n", record: own, scratch: other, gone: true},
		"a process is in another user's":        {owner: "5002\n", record: other, lives: true, fails: true},
		"the same user's, for a step":           {owner: "5001\n", record: own, scratch: own},
		"the same user's, older":                {owner: "5001\n", record: own, scratch: own, begun: now.Add(time.Minute), gone: true},
		"the same user's, older, with process":  {owner: "5001\n", record: own, lives: true, begun: now.Add(time.Minute), gone: true},
		"the same user's, of the present job":   {owner: "5001\n", record: own, scratch: own, begun: now.Add(-time.Minute)},
		"the same user's, older, its step runs": {owner: "5001\n", record: own, scratch: own, stepd: true, begun: now.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			w, dir := newSweep(t, nil)
			var holder *exec.Cmd
			if row.record != 0 {
				holder = statetest.Sleeper(t)
				if row.lives { // the process that waits in the namespace
					holder = exec.Command("unshare", "--mount", "sh", "-c", "sleep 1000 & wait")
					holder.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
					require.NoError(t, holder.Start())
					t.Cleanup(func() { syscall.Kill(-holder.Process.Pid, syscall.SIGKILL); holder.Wait() })
					require.Eventually(t, func() bool {
						list, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", holder.Process.Pid))
						return len(list) > 0
					}, time.Minute, time.Millisecond)
				}
				record := strings.Replace(statetest.RecordOf(t, holder.Process.Pid), statetest.Key+" 0 ", fmt.Sprint(statetest.Key, " ", row.record, " "), 1)
				statetest.AddRecord(t, w.state, "jobs/"+job+"/small", record)
			}
			if row.owner != "" {
				statetest.AddRecord(t, w.state, "jobs/"+job+"/"+contract.OwnerFile, row.owner)
			}
			files := filepath.Join(w.config.Scratch, "jobs", job)
			if row.scratch != 0 {
				require.NoError(t, os.MkdirAll(files+"/tmp", 0o700))
				nstest.WriteFile(t, files+"/tmp/file", "secret")
				require.NoError(t, os.Chown(files, row.scratch, -1))
			}
			if row.ended {
				w.state.NoteEnded(job)
			}
			if row.stepd {
				step, err := net.Listen("unix", dir+"/spool/n1_"+job+".0")
				require.NoError(t, err)
				t.Cleanup(func() { step.Close() })
			}
			released := 0
			err := EndEarlier(w.state, w.config, Present{Job: job, UID: own, Begun: row.begun}, soon(), func(string) error { released++; return nil })
			if row.fails {
				require.ErrorContains(t, err, "a job of another user with the same id left its sandbox on this node, and processes are still in it")
			} else {
				require.NoError(t, err)
			}
			ownStays := row.record == own && (!row.gone || row.scratch == other)
			assert.Equal(t, ownStays || row.fails, isPresent(w.state.JobDir(job)), "the records")
			assert.Equal(t, row.scratch != 0 && !row.gone, isPresent(files), "the files")
			assert.NoDirExists(t, filepath.Join(w.config.Scratch, "jobs", trashName))
			assert.Equal(t, row.gone && !ownStays && (row.owner != "" || row.record != 0), released == 1, "the network")
			assert.Empty(t, w.state.Ended())
			if holder != nil && row.gone && !ownStays {
				assert.EqualError(t, holder.Wait(), "signal: killed")
			} else if holder != nil {
				assert.NoError(t, holder.Process.Signal(syscall.Signal(0)))
			}
		})
	}
}

// TestEndEarlierWithoutItsNetwork requires that nothing is removed while the network of the earlier job cannot be released.
func TestEndEarlierWithoutItsNetwork(t *testing.T) {
	w, _ := newSweep(t, nil)
	statetest.AddRecord(t, w.state, "jobs/7/"+contract.OwnerFile, "5002\n")
	err := EndEarlier(w.state, w.config, Present{Job: "7", UID: 5001}, soon(), func(string) error { return os.ErrDeadlineExceeded })
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
	assert.True(t, isRecorded(w.state, "7"))
}

// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/site"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/state/statetest"
	"github.com/gojail/gojail/internal/nstest"
)

func newState(t *testing.T) *state.State {
	t.Helper()
	nstest.NeedRoot(t)
	s, err := state.OpenState(filepath.Join(t.TempDir(), "state"))
	require.NoError(t, err)
	return s
}

// recordOf returns the record of a live process with an owner and a key.
func recordOf(t *testing.T, pid int, uid, key string) string {
	text := strings.Replace(statetest.RecordOf(t, pid), " 0 ", " "+uid+" ", 1)
	return strings.Replace(text, statetest.Key, key, 1)
}

func TestReadEmpty(t *testing.T) {
	f := Read("n1", newState(t), nil, t.TempDir())
	assert.Empty(t, f.Problems)
	text, err := Render(f)
	require.NoError(t, err)
	assert.Contains(t, string(text), "gojail_metrics_errors{node=\"n1\"} 0\n")
	assert.NotContains(t, string(text), "gojail_job_info")
}

func TestRead(t *testing.T) {
	s := newState(t)
	pid := statetest.Sleeper(t).Process.Pid
	alive := recordOf(t, pid, "4294967290", statetest.Key)
	statetest.AddRecord(t, s, "jobs/17/debian", alive)
	statetest.AddRecord(t, s, "jobs/17/debian+0123456789abcdef", alive)
	statetest.AddRecord(t, s, "jobs/17/.debian.versions", "20260101-000000-abcdef01.squashfs\n")
	statetest.AddRecord(t, s, "jobs/17/.debian+0123456789abcdef.versions", "\n")
	statetest.AddRecord(t, s, "jobs/17/debian.json", "{}")
	statetest.AddRecord(t, s, "jobs/17/.uid", "4294967290\n")
	begun := time.Unix(1700000000, 0)
	require.NoError(t, os.Chtimes(s.JobDir("17")+"/.uid", begun, begun))
	statetest.AddRecord(t, s, "jobs/18/debian", fmt.Sprintf("%d 999999999 5 %s 0\n", contract.Version, statetest.Key))
	statetest.AddRecord(t, s, "jobs/19/debian", "rubbish")
	statetest.AddRecord(t, s, "jobs/21/debian", strings.Replace(statetest.RecordOf(t, pid), strconv.Itoa(contract.Version), "1", 1))
	statetest.AddRecord(t, s, "ended/20", "")
	c := &config.Config{Jails: map[string]*config.Jail{"debian": {Name: "debian"}}}
	statetest.AddRecord(t, s, "jails/debian/zygote", recordOf(t, pid, "0", site.Key(c, node.ReadHardware(c), c.Jails["debian"])))
	statetest.AddRecord(t, s, "jails/debian/versions", "20260101-000000-abcdef01\n20260102-000000-abcdef02.erofs\n")
	statetest.AddRecord(t, s, "jails/gone/zygote", fmt.Sprintf("%d 999999999 5 %s 0\n", contract.Version, statetest.Key))
	statetest.AddRecord(t, s, "jails/old/zygote", recordOf(t, pid, "0", statetest.Key))

	proc := t.TempDir()
	f := Read("n1", s, c, proc)
	assert.Empty(t, f.Problems)
	require.Len(t, f.jobs, 2, "19 has nothing that can be read")
	assert.Equal(t, job{id: "17", user: "4294967290", start: begun, jails: []jail{{"debian", ""}, {"debian", "20260101-000000-abcdef01"}}}, f.jobs[0])
	assert.Equal(t, "18", f.jobs[1].id, "its holder has ended, the job may have not")
	assert.True(t, f.jobs[1].start.IsZero())
	assert.Equal(t, map[sandboxKind]int{{"debian", "active"}: 2, {"debian", "gone"}: 1, {"debian", "damaged"}: 1, {"debian", "foreign"}: 1, {"old", "active"}: 0}, f.sandboxes)
	assert.Equal(t, 1, f.endsFailed)
	require.Len(t, f.templates, 2)
	assert.Equal(t, "20260101-000000-abcdef01,20260102-000000-abcdef02", f.templates[0].version)
	assert.True(t, f.templates[0].current)
	assert.False(t, f.templates[1].current, "no jail of the configuration")
	assert.True(t, f.templates[1].judged)
	assert.False(t, Read("n1", s, nil, proc).templates[0].judged)

	require.NoError(t, os.RemoveAll(s.JobDir("17")))
	assert.Len(t, Read("n1", s, c, proc).jobs, 1, "gone with the job")
}

// TestCountersBeginAtZero: the first failure in a jail is an increase, also where its counters have been in no file before.
func TestCountersBeginAtZero(t *testing.T) {
	c := &config.Config{Jails: map[string]*config.Jail{"debian": {Name: "debian"}, "other": {Name: "other"}}}
	disk := Read("n1", newState(t), c, t.TempDir())
	assert.Empty(t, disk.launches, "nothing is counted where the state directory is not on tmpfs")

	dir := t.TempDir()
	require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=755"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	s, err := state.OpenState(dir)
	require.NoError(t, err)
	entered := state.Launches{Version: contract.Version, Entered: 3}
	var text bytes.Buffer
	require.NoError(t, binary.Write(&text, binary.NativeEndian, entered))
	statetest.AddRecord(t, s, "launches/debian", text.String())
	statetest.AddRecord(t, s, "launches/removed", text.String())
	f := Read("n1", s, c, t.TempDir())
	assert.Empty(t, f.Problems)
	assert.Equal(t, map[string]state.Launches{"": {}, "debian": entered, "other": {}, "removed": entered}, f.launches)
	page, _ := render(t, f)
	for _, jail := range []string{"", "debian", "other", "removed"} {
		for _, reason := range contract.FailReasons {
			assert.Contains(t, page, fmt.Sprintf("gojail_steps_failed_total{jail=%q,node=\"n1\",reason=%q} 0\n", jail, reason))
		}
	}
	assert.Contains(t, page, `gojail_steps_entered_total{jail="other",node="n1"} 0`)
	assert.Equal(t, map[string]state.Launches{"": {}, "debian": entered, "removed": entered}, Read("n1", s, nil, t.TempDir()).launches, "gojail.toml cannot be read")

	require.NoError(t, os.RemoveAll(dir+"/launches"))
	require.NoError(t, os.WriteFile(dir+"/launches", nil, 0o600))
	f = Read("n1", s, c, t.TempDir())
	assert.NotEmpty(t, f.Problems)
	assert.Empty(t, f.launches, "what is unknown is not 0")
}

// TestReadManyJobs: each job of a node has its own series and no more than docs/metrics.md says, and reading leaves nothing open.
func TestReadManyJobs(t *testing.T) {
	const jobs = 500
	s := newState(t)
	nstest.NoLeaks(t)
	alive := recordOf(t, statetest.Sleeper(t).Process.Pid, "4294967290", statetest.Key)
	cgroup := filepath.Join(t.TempDir(), "job")
	require.NoError(t, os.Mkdir(cgroup, 0o755))
	nstest.WriteFile(t, filepath.Join(cgroup, "memory.current"), "1\n")
	for i := range jobs {
		dir := fmt.Sprintf("jobs/%d/", 1000+i)
		statetest.AddRecord(t, s, dir+"debian", alive)
		statetest.AddRecord(t, s, dir+".uid", "4294967290\n")
		statetest.AddRecord(t, s, dir+".cgroups", cgroup+"\n")
	}
	f := Read("n1", s, nil, t.TempDir())
	assert.Empty(t, f.Problems)
	text, families := render(t, f)
	for _, name := range []string{"gojail_job_info", "gojail_job_start_time_seconds", "gojail_job_memory_bytes"} {
		assert.Len(t, families[name].Metric, jobs, name)
	}
	assert.Less(t, strings.Count(text, "\n"), 4*jobs)
}

func TestNamesOfUsers(t *testing.T) {
	asked := 0
	names := newUsers()
	names.lookup = func(uid string) (string, error) {
		asked++
		if uid == "7" {
			return "", errors.New("unknown user")
		}
		return "user" + uid, nil
	}
	assert.Equal(t, "user5", names.name(5))
	assert.Equal(t, "user5", names.name(5))
	assert.Equal(t, 1, asked)
	assert.Equal(t, "7", names.name(7))

	silent := newUsers()
	silent.until = time.Now()
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	silent.lookup = func(string) (string, error) { <-hang; return "late", nil }
	assert.Equal(t, "5", silent.name(5))
	assert.Equal(t, "6", silent.name(6), "the time is for all together")
}

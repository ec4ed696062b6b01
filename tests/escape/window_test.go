// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/harness"
)

// TestFalseProcWhileTasksRun replaces the jail's /proc, as the owner of its contents, while tasks run, by one whose
// files never answer slurmstepd, which waits for them, and its step with it.
func TestFalseProcWhileTasksRun(t *testing.T) {
	if why := harness.Missing(); why != "" {
		t.Skip(why)
	}
	s, err := newSite(harness.Options{SlurmConf: map[string]string{"JobAcctGatherType": "jobacct_gather/linux"}})
	if s != nil {
		t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	}
	require.NoError(t, err)
	s.giveRootToAlice(t)
	s.reloadJail(t)

	ended := make(chan harness.Result)
	go func() {
		ended <- s.Run(harness.Alice, "srun", "-wn1", "-n2", "-O", "--jail=owned", "sh", "-c",
			"echo >/tmp/$SLURM_PROCID; until [ -e /tmp/go ]; do sleep 0.1; done; sleep $SLURM_PROCID")
	}()
	tmp := s.Path("/var/lib/gojail/n1/jobs/[0-9]*/tmp")
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		there, _ := filepath.Glob(tmp + "/[01]")
		return len(there) == 2
	}))
	var pipes []string
	for _, p := range s.Processes() {
		dir := s.Path(fmt.Sprintf("%s/false/%d", owned, p.Pid))
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, unix.Mkfifo(filepath.Join(dir, "stat"), 0o644))
		pipes = append(pipes, filepath.Join(dir, "stat"))
	}
	t.Cleanup(func() { os.RemoveAll(s.Path(owned + "/false")) })
	s.swapForTest(t, "/proc", "/false")
	there, err := filepath.Glob(tmp)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(there[0], "go"), nil, 0o644))
	select {
	case r := <-ended:
		assert.Zero(t, r.Code, r)
	case <-time.After(harness.Timeout * harness.Slow):
		assert.Fail(t, "the step does not end", "%s", strings.Join(listCommands(s), "\n"))
		for _, pipe := range pipes { // releases the processes that wait there
			if fd, err := unix.Open(pipe, unix.O_RDWR|unix.O_NONBLOCK, 0); err == nil {
				time.Sleep(100 * time.Millisecond) // those that wait there go on
				unix.Close(fd)
			}
		}
		<-ended
	}
	assert.True(t, s.WaitIdle(), s.Drained())
}

// listCommands returns the pid and the command of each process of the cluster.
func listCommands(s *site) (list []string) {
	for _, p := range s.Processes() {
		list = append(list, fmt.Sprint(p.Pid, " ", p.Command))
	}
	return list
}

// TestExchangedTmpWhileTasksStart moves the jail's /tmp away and back, as the owner of its contents, again and again,
// while Slurm starts tasks. Steps may fail because of that; no node may be drained.
func TestExchangedTmpWhileTasksStart(t *testing.T) {
	s := sharedSite(t)
	s.giveRootToAlice(t)
	s.reloadJail(t)
	rounds := 6
	if whole {
		rounds = 200
	}
	tmp, link := s.Path(owned+"/tmp"), s.Path(owned+"/link")
	stop, stopped := make(chan bool), make(chan error)
	var exchanged atomic.Int64
	exchange := func() error {
		exchanged.Add(1)
		return unix.Renameat2(unix.AT_FDCWD, tmp, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
	}
	launch := func() harness.Job {
		return s.Batch(harness.Alice, "true", "--jail=owned", "-wn1", "--output=/home/alice/exchanged")
	}
	require.Equal(t, "COMPLETED", launch().State, "nobody exchanges anything yet")
	require.NoError(t, os.Symlink("home", link))
	go func() {
		var err error
		for done := false; !done && err == nil; {
			select {
			case <-stop:
				done = true
			default:
				err = exchange()
				time.Sleep(time.Duration(100+time.Now().UnixNano()%1000) * time.Microsecond) // any moment
			}
		}
		stopped <- err
	}()
	t.Cleanup(func() {
		if st, err := os.Lstat(tmp); err == nil && !st.IsDir() {
			require.NoError(t, exchange())
		}
		require.NoError(t, os.Remove(link))
	})
	for range rounds {
		before := exchanged.Load()
		assert.NotEmpty(t, launch().ID)
		assert.Greater(t, exchanged.Load(), before, "while it started")
		if !assert.Empty(t, s.Drained()) {
			break
		}
	}
	close(stop)
	require.NoError(t, <-stopped)
}

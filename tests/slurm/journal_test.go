// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// journal stands in for journald's socket of syslog.
type journal struct {
	t    *testing.T
	conn *net.UnixConn
	seen []string
}

// listenToJournal listens where journald does, for the rest of the test.
func listenToJournal(t *testing.T, c *harness.Cluster) *journal {
	t.Helper()
	path := c.Path("/run/systemd/journal/dev-log")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		os.Remove(path)
	})
	return &journal{t: t, conn: conn}
}

var pidOfLine = regexp.MustCompile(`^<(\d+)>gojail\[\d+\]: `)

// lines returns the lines about a job, or all, until there is one that matches.
func (j *journal) lines(job string, last string) (lines []string) {
	j.t.Helper()
	buffer := make([]byte, 4096)
	find := func() bool {
		lines = nil
		for _, line := range j.seen {
			if job == "" || strings.Contains(line, " job="+job+" ") {
				lines = append(lines, line)
			}
		}
		return len(lines) > 0 && regexp.MustCompile(last).MatchString(lines[len(lines)-1])
	}
	until := time.Now().Add(harness.Timeout)
	for !find() {
		require.NoError(j.t, j.conn.SetReadDeadline(until))
		n, err := j.conn.Read(buffer)
		require.NoError(j.t, err, "%s; so far: %q", last, j.seen)
		if text := string(buffer[:n]); pidOfLine.MatchString(text) {
			j.seen = append(j.seen, pidOfLine.ReplaceAllString(text, "$1 "))
		}
	}
	return lines
}

// TestJournalOfAJob: one line when the job enters a jail, one when it ends, none for each step.
func TestJournalOfAJob(t *testing.T) {
	c := sharedCluster(t)
	j := listenToJournal(t, c)
	job := c.Batch(harness.Alice, "#!/bin/sh\nsrun true\nsrun --jail=other true\n", "-wn1", "--jail=debian", "--chdir=/tmp")
	assert.Equal(t, "COMPLETED", job.State, job)
	lines := j.lines(job.ID, "event=ended")
	require.Len(t, lines, 3, "%q", lines)
	assert.Equal(t, "30 event=entered job="+job.ID+" step=batch uid=5001 jail=debian version=-", lines[0])
	assert.Equal(t, "30 event=entered job="+job.ID+" step=1 uid=5001 jail=other version=-", lines[1])
	assert.Regexp(t, "^30 event=ended job="+job.ID+` uid=5001 jail=(debian,other|other,debian) version=- memory_peak=(-|\d+)$`, lines[2])
}

// TestJournalOfAFailure: the reason in one line, whatever a user writes.
func TestJournalOfAFailure(t *testing.T) {
	c := sharedCluster(t)
	j := listenToJournal(t, c)
	for _, r := range []struct{ jail, mount, want string }{
		{"nosuch", "", `jail=- reason=request error="there is no jail 'nosuch' on this node; choose one of: debian, other"$`},
		{"debian", "/etc:/mnt", `jail=debian reason=sandbox error="--jail-mount=/etc:/mnt: /etc may not be mounted in jail debian; permitted: /data"$`},
		{"debian", `/etc" event="ended:/mnt`, `jail=debian reason=sandbox error="--jail-mount=/etc' event='ended:/mnt: [^"]*"$`},
	} {
		args := []string{"srun", "-Q", "-wn1", "--jail=" + r.jail}
		if r.mount != "" {
			args = append(args, "--jail-mount="+r.mount)
		}
		assert.NotZero(t, c.Run(harness.Alice, append(args, "true")...).Code, r.jail)
		lines := j.lines("", r.want)
		assert.Regexp(t, `^27 event=failed job=\d+ step=0 uid=5001 `+r.want, lines[len(lines)-1])
	}
}

// TestJournalThatIsNotRead: a daemon that does not take lines costs lines, and no time.
func TestJournalThatIsNotRead(t *testing.T) {
	c := sharedCluster(t)
	j := listenToJournal(t, c)
	flood, err := net.DialUnix("unixgram", nil, j.conn.LocalAddr().(*net.UnixAddr))
	require.NoError(t, err)
	defer flood.Close()
	for err == nil {
		require.NoError(t, flood.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
		_, err = flood.Write([]byte("full"))
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=debian", "cat", marker))
	assert.True(t, c.WaitIdle(), c.Drained())
}

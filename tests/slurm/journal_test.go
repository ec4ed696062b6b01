// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"net"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestJournalOfAJob: one line when the job enters a jail, one when it ends, none for each step.
func TestJournalOfAJob(t *testing.T) {
	c := sharedCluster(t)
	j := c.ListenToJournal(t)
	job := c.Batch(harness.Alice, "#!/bin/sh\nsrun true\nsrun --jail=other true\n", "-wn1", "--jail=debian", "--chdir=/tmp")
	assert.Equal(t, "COMPLETED", job.State, job)
	lines := j.Lines(job.ID, "event=ended")
	require.Len(t, lines, 3, "%q", lines)
	assert.Equal(t, "30 event=entered job="+job.ID+" step=batch uid=5001 jail=debian version=-", lines[0])
	assert.Equal(t, "30 event=entered job="+job.ID+" step=1 uid=5001 jail=other version=-", lines[1])
	assert.Regexp(t, "^30 event=ended job="+job.ID+` uid=5001 jail=(debian,other|other,debian) version=- memory_peak=(-|\d+)$`, lines[2])
	requireDocumented(t, lines)
}

// requireDocumented requires that docs/metrics.md explains each field of the lines.
func requireDocumented(t *testing.T, lines []string) {
	t.Helper()
	table := findSetting(t, "docs/metrics.md", "\n## The journal\n", "\n### In sacct\n")
	for _, line := range lines {
		unquoted := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(line, "")
		for _, m := range regexp.MustCompile(` ([a-z_]+)=`).FindAllStringSubmatch(unquoted, -1) {
			assert.Regexp(t, "(?m)^\\| (`[a-z_]+`, )*`"+m[1]+"`", table, "%s: the page does not explain %s", line, m[1])
		}
	}
}

// TestJournalOfAFailure: the reason in one line, whatever a user writes.
func TestJournalOfAFailure(t *testing.T) {
	c := sharedCluster(t)
	j := c.ListenToJournal(t)
	for _, r := range []struct{ jail, mount, want string }{
		{"nosuch", "", `jail=- reason=request error="there is no jail 'nosuch' on this node; choose one of: debian, other"$`},
		{"debian", "/etc:/mnt", `jail=debian reason=request error="--jail-mount=/etc:/mnt: /etc may not be mounted in jail debian; permitted: /data"$`},
		{"debian", `/etc" event="ended:/mnt`, `jail=debian reason=request error="--jail-mount=/etc' event='ended:/mnt: [^"]*"$`},
	} {
		args := []string{"srun", "-Q", "-wn1", "--jail=" + r.jail}
		if r.mount != "" {
			args = append(args, "--jail-mount="+r.mount)
		}
		assert.NotZero(t, c.Run(harness.Alice, append(args, "true")...).Code, r.jail)
		lines := j.Lines("", r.want)
		assert.Regexp(t, `^27 event=failed job=\d+ step=0 uid=5001 `+r.want, lines[len(lines)-1])
		requireDocumented(t, lines)
	}
}

// TestJournalThatIsNotRead: a daemon that does not take lines costs lines, and no time.
func TestJournalThatIsNotRead(t *testing.T) {
	c := sharedCluster(t)
	j := c.ListenToJournal(t)
	flood, err := net.DialUnix("unixgram", nil, j.Address())
	require.NoError(t, err)
	defer flood.Close()
	for err == nil {
		require.NoError(t, flood.SetWriteDeadline(time.Now().Add(100*time.Millisecond))) // it is full
		_, err = flood.Write([]byte("full"))
	}
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=debian", "cat", marker))
	assert.True(t, c.WaitIdle(), c.Drained())
}

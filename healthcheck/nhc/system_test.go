// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

// fakePing is a ping for which only the host "good" answers.
func fakePing(t *testing.T, s *System) {
	run := s.Command
	s.pings = []string{"/nowhere/ping", "/usr/bin/env"} // is there and root's
	s.Command = func(ctx context.Context, name string, args ...string) ([]byte, error) {
		if name != "/usr/bin/env" {
			return run(ctx, name, args...)
		}
		code := map[string]string{"good": "0", "bad": "1"}[args[len(args)-1]]
		if args[len(args)-1] == "good" && len(args) > 9 {
			assert.Equal(t, "-q -n -I eth0 -t 2 -c 2 -w 1 -W 1 good", strings.Join(args, " "))
		}
		if code == "" {
			code = "2"
		}
		return run(ctx, "/bin/sh", "-c", "exit "+code)
	}
}

func TestAMachineThatTellsNothing(t *testing.T) {
	s := &System{Proc: t.TempDir(), Sys: t.TempDir(), Etc: t.TempDir(), Now: time.Now}
	for _, check := range []string{"check_fs_mount /", "check_fs_free / 1k", "check_hw_cpuinfo 1", "check_hw_physmem 1 2", "check_hw_eth eth0", "check_ps_service sshd",
		"check_ps_loadavg 1", "check_net_socket -p tcp"} {
		l := Parse("* || "+check, "n1")[0]
		fault, err := l.Check(context.Background(), s)
		assert.Error(t, err, check)
		assert.Empty(t, fault, check)
	}
}

func TestACommandThatGetsLessTimeThanItMayTake(t *testing.T) {
	s := &System{Command: func(ctx context.Context, _ string, _ ...string) ([]byte, error) {
		<-ctx.Done()
		return nil, errors.New("killed")
	}}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Parse("* || check_cmd_status /usr/bin/env", "n1")[0].Check(ctx, s)
	assert.EqualError(t, err, "/usr/bin/env had less than its 5s left; raise the check's timeout")
}

// A host that was not pinged is not reported.
func TestAPingThatCannotBeMade(t *testing.T) {
	if !nstest.IsRoot() {
		t.Skip("needs root: ping must be root's")
	}
	late, cancel := context.WithCancel(context.Background())
	cancel()
	exits := func(how string) error { return exec.Command("/bin/sh", "-c", how).Run() }
	for want, c := range map[string]struct {
		ctx context.Context
		err error
	}{
		"no time left to ping n2; raise the check's timeout": {late, exits("kill -9 $$")},
		"cannot run ping: signal: killed":                    {context.Background(), exits("kill -9 $$")},
		"cannot run ping: exec format error":                 {context.Background(), unix.ENOEXEC},
	} {
		s := &System{pings: []string{"/usr/bin/env"}, Command: func(context.Context, string, ...string) ([]byte, error) { return nil, c.err }}
		fault, err := Parse("* || check_net_ping n2 n3", "n1")[0].Check(c.ctx, s)
		assert.EqualError(t, err, want)
		assert.Empty(t, fault)
	}
}

// The figures of df(1) for a file system of 1000 blocks of 4 kB and 100 inodes.
func TestSpace(t *testing.T) {
	st := &unix.Statfs_t{Bsize: 4096, Frsize: 4096, Blocks: 1000, Bfree: 300, Bavail: 250, Files: 100, Ffree: 10}
	blocks, inodes := computeRoom(st, false), computeRoom(st, true)
	assert.Equal(t, room{4000, 2800, 1000}, blocks)
	assert.Equal(t, room{100, 90, 10}, inodes)
	assert.Equal(t, int64(74), blocks.percentUsed()) // 73.7, rounded up
	for _, c := range []struct {
		what, low, high string
		inodes          bool
		fault           string
	}{
		{"free", "26%", "", false, ""}, {"free", "27%", "", false, "has less than 27% free"},
		{"free", "1000", "", false, ""}, {"free", "1001", "", false, "has less than 1001 free"},
		{"used", "", "75%", false, ""}, {"used", "", "74%", false, "has 74% or more used"},
		{"used", "", "2801", false, ""}, {"used", "", "2800k", false, "has 2800k or more used"},
		{"size", "4000", "4000", false, ""}, {"size", "4001", "", false, "has less than 4001 in all"}, {"size", "", "3999", false, "has more than 3999 in all"},
		{"free", "10", "", true, ""}, {"free", "11", "", true, "has less than 11 inodes free"}, {"free", "11%", "", true, "has less than 11% inodes free"},
		{"used", "", "90", true, "has 90 or more inodes used"}, {"used", "", "91%", true, ""}, {"size", "1k", "", true, "has less than 1k inodes in all"},
	} {
		r, has := spaceRule{what: c.what, inodes: c.inodes}, blocks
		if c.inodes {
			has = inodes
		}
		var err, err2 error
		r.low, err = parseBound(c.low, c.inodes)
		r.high, err2 = parseBound(c.high, c.inodes)
		require.NoError(t, errors.Join(err, err2))
		assert.Equal(t, c.fault, r.judgeRoom(has), fmt.Sprint(c))
		assert.Empty(t, r.judgeRoom(room{}), "a file system without any")
	}
}

func TestSocketsOfTheMachine(t *testing.T) {
	all, err := (&System{Proc: "/proc"}).readSockets()
	require.NoError(t, err)
	for _, s := range all {
		assert.NotEmpty(t, s.proto)
		if s.proto != "unix" {
			assert.Regexp(t, `^[0-9a-f.:]+:([0-9]+|\*)$`, s.local)
		}
	}
}

// TestLongCommandLine: a user's process may have a command line of any length.
func TestLongCommandLine(t *testing.T) {
	nstest.NeedRoot(t)
	const long = 256 << 20
	s, dir := node(t)
	require.NoError(t, os.Truncate(dir+"/proc/10/cmdline", long))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	all, err := s.listProcesses(t.Context())
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	assert.Len(t, all, 4)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(long/8))
}

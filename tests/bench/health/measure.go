// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// becomeReaper makes orphans children of this process, so that what processes cost
// that nobody waits for is counted, too (PR_SET_CHILD_SUBREAPER, prctl(2)).
func becomeReaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot become the reaper of orphans: %w", err)
	}
	return nil
}

// warm runs a candidate a few times, so that its files are in memory. Only the last
// time has to be without news: what this machine does meanwhile is one for gojail.
func (c *candidate) warm(ctx context.Context) {
	if c.why != "" {
		return
	}
	for range 3 {
		c.why = ""
		if _, _, err := c.once(ctx); err != nil {
			c.why = err.Error()
		}
	}
}

// measure runs each candidate once in each round, in another order each time.
func measure(ctx context.Context, list []*candidate, rounds int) error {
	for range rounds {
		for _, i := range rand.Perm(len(list)) {
			c := list[i]
			if c.why != "" {
				continue
			}
			wall, cpu, err := c.once(ctx)
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			if err != nil {
				c.why = err.Error()
				continue
			}
			c.wall, c.cpu = append(c.wall, wall), append(c.cpu, cpu)
		}
	}
	return nil
}

// once is the wall time of one run until its end, and the CPU time, user and system,
// of all processes that it started; in ms.
func (c *candidate) once(ctx context.Context) (wall, cpu float64, err error) {
	before := children()
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Env, cmd.Dir = c.env, "/"
	begin := time.Now()
	err = cmd.Run()
	wall = ms(time.Since(begin))
	reap()
	if err != nil {
		return 0, 0, fmt.Errorf("a run failed: %w", err)
	}
	return wall, ms(children() - before), nil
}

// reap waits for the orphans, and ends those that stay: NHC leaves its watchdog's sleep.
func reap() {
	for patience := 10; ; patience-- {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if err != nil { // ECHILD: there are none
			return
		}
		if pid > 0 {
			continue
		}
		if patience < 0 {
			endOrphans()
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// endOrphans kills the children that this process has, by now only orphans.
func endOrphans() {
	lists, _ := filepath.Glob("/proc/self/task/*/children") // Linux 3.5, CONFIG_PROC_CHILDREN
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	}
}

// children is the CPU time of all children that were waited for, and of theirs.
func children() time.Duration {
	var use unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_CHILDREN, &use)
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

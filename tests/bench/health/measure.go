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

// becomeReaper makes orphans children of this process, so that the CPU time of processes
// without a waiting parent is counted, too (PR_SET_CHILD_SUBREAPER, prctl(2)).
func becomeReaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot become the reaper of orphans: %w", err)
	}
	return nil
}

// warmUp runs a candidate a few times, so that its files are in memory. Only the last run
// must succeed: gojail reports events of this machine since its first one.
func (c *candidate) warmUp(ctx context.Context) {
	if c.why != "" {
		return
	}
	for range 3 {
		c.why = ""
		if _, _, err := c.runOnce(ctx); err != nil {
			c.why = err.Error()
		}
	}
}

// measureRounds runs each candidate once in each round, in another order each time.
func measureRounds(ctx context.Context, list []*candidate, rounds int) error {
	for range rounds {
		for _, i := range rand.Perm(len(list)) {
			c := list[i]
			if c.why != "" {
				continue
			}
			wall, cpu, err := c.runOnce(ctx)
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

// runOnce returns the wall time of one run, and the CPU time, user and system, of all
// processes that it started, in ms.
func (c *candidate) runOnce(ctx context.Context) (wall, cpu float64, err error) {
	before := readChildrenTime()
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Env, cmd.Dir = c.env, "/"
	begin := time.Now()
	err = cmd.Run()
	wall = milliseconds(time.Since(begin))
	reapOrphans()
	if err != nil {
		return 0, 0, fmt.Errorf("a run failed: %w", err)
	}
	return wall, milliseconds(readChildrenTime() - before), nil
}

// reapOrphans waits for the orphans, and ends those that stay: NHC leaves its watchdog's sleep.
func reapOrphans() {
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

// readChildrenTime returns the CPU time of all children that were waited for, and of their descendants.
func readChildrenTime() time.Duration {
	var use unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_CHILDREN, &use)
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

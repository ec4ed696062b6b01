// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// measureRounds runs each candidate once in each round, in another order each time.
func (b *bench) measureRounds(ctx context.Context, list []*candidate, rounds int) error {
	for range rounds {
		for _, i := range rand.Perm(len(list)) {
			if list[i].why == "" {
				b.runOnce(ctx, list[i])
			}
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
		}
	}
	return nil
}

// runOnce runs a candidate and adds what it cost to its results.
func (b *bench) runOnce(ctx context.Context, c *candidate) {
	dir := filepath.Join(b.dir, "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		c.why = err.Error()
		return
	}
	defer os.RemoveAll(dir)
	unix.Sync()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", c.script)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt ends all that the script has started
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	before, begin := readChildrenTime(), time.Now()
	if err := cmd.Start(); err != nil {
		c.why = err.Error()
		return
	}
	ended, most := make(chan struct{}), make(chan int64)
	go watchMemory(cmd.Process.Pid, ended, most)
	err := cmd.Wait()
	wall := time.Since(begin)
	close(ended)
	memory := <-most
	fmt.Fprintf(os.Stderr, "%s: %.1f s\n", c.name, wall.Seconds())
	if err != nil {
		c.why = fmt.Sprintf("%v: %.300s", err, out.String())
		return
	}
	c.wall, c.cpu = append(c.wall, wall.Seconds()), append(c.cpu, (readChildrenTime()-before).Seconds())
	c.memory = append(c.memory, float64(memory)/(1<<20))
}

// watchMemory sends the largest resident memory that a process and its descendants had together, read every 10 ms.
func watchMemory(pid int, ended chan struct{}, most chan int64) {
	largest := int64(0)
	for {
		select {
		case <-ended:
			most <- largest
			return
		case <-time.After(10 * time.Millisecond):
			largest = max(largest, sumMemory(pid))
		}
	}
}

// sumMemory returns the resident memory of a process and its descendants, without pages that several of them share.
func sumMemory(pid int) (sum int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "Pss:" {
			kilobytes, _ := strconv.ParseInt(words[1], 10, 64)
			sum += kilobytes << 10
		}
	}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(children)) {
			if child, err := strconv.Atoi(word); err == nil {
				sum += sumMemory(child)
			}
		}
	}
	return sum
}

// readChildrenTime returns the CPU time of all children that were waited for, and of their descendants.
func readChildrenTime() time.Duration {
	var use unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_CHILDREN, &use)
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

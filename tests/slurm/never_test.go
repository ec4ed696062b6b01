// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/harness"
)

// traits are the properties of a host process that a Go runtime, or careless C, would change.
type traits struct {
	Threads, SigBlk, SigIgn, SigCgt, OpenFiles string
}

// readTraits reads what the plugin could change of a process.
func readTraits(t *testing.T, c *harness.Cluster, p harness.Process) traits {
	t.Helper()
	limits, err := os.ReadFile(c.Path(fmt.Sprintf("/proc/%d/limits", p.Pid)))
	require.NoError(t, err)
	s := traits{Threads: p.Status["Threads"], SigBlk: p.Status["SigBlk"], SigIgn: p.Status["SigIgn"], SigCgt: p.Status["SigCgt"]}
	if ignored, err := strconv.ParseUint(s.SigIgn, 16, 64); err == nil && p.Status["Name"] != "sleep" {
		// Slurm ignores SIGPIPE while it sends, and two of its threads at once can leave it so.
		s.SigIgn = fmt.Sprintf("%016x", ignored&^(1<<(unix.SIGPIPE-1)))
	}
	for line := range strings.Lines(string(limits)) {
		if strings.HasPrefix(line, "Max open files") {
			s.OpenFiles = strings.TrimSpace(line)
		}
	}
	return s
}

// runAndReadTraits starts a step that stays, and returns the traits of the processes around it.
func runAndReadTraits(t *testing.T, c *harness.Cluster, options ...string) map[string]traits {
	t.Helper()
	ctx, end := context.WithCancel(context.Background())
	args := append(append([]string{"srun", "-wn1"}, options...), "sleep", "1234")
	srun := c.Exec(ctx, harness.Command{User: harness.Alice, Args: args})
	require.NoError(t, srun.Start())
	defer func() {
		c.Run(harness.Alice, "scancel", "-u", "alice")
		srun.Wait()
		end()
	}()
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		return slices.ContainsFunc(c.Find("sleep 1234"), func(p harness.Process) bool { return p.Status["Name"] == "sleep" })
	}))
	found := readTraitsAround(t, c)
	harness.Poll(harness.Timeout, func() bool { // until the threads of the start-up are gone
		last := found
		found = readTraitsAround(t, c)
		return len(found) == 4 && maps.Equal(last, found)
	})
	require.Len(t, found, 4)
	return found
}

// readTraitsAround returns the traits of each process around the running step.
func readTraitsAround(t *testing.T, c *harness.Cluster) map[string]traits {
	found := map[string]traits{}
	for _, p := range c.Processes() {
		switch {
		case strings.HasPrefix(p.Command, "srun") && p.Status["Threads"] != "1":
			found["srun"] = readTraits(t, c, p)
		case strings.HasPrefix(p.Command, "slurmstepd"):
			found["slurmstepd"] = readTraits(t, c, p)
		case strings.HasPrefix(p.Command, "/usr/sbin/slurmd -N n1"):
			found["slurmd"] = readTraits(t, c, p)
		case p.Status["Name"] == "sleep":
			found["task"] = readTraits(t, c, p)
		}
	}
	return found
}

// TestSlurmsProcessesAreUnchanged compares a cluster without the plugin to one with it.
func TestSlurmsProcessesAreUnchanged(t *testing.T) {
	plain := runAndReadTraits(t, harness.Start(t, harness.Options{}))
	c := sharedCluster(t)
	assert.Equal(t, plain, runAndReadTraits(t, c, "--jail=none"))
	assert.Equal(t, plain, runAndReadTraits(t, c, "--jail=debian"))
}

// TestClientsAreUnchanged: the limits and the signal mask that a job inherits from srun, sbatch and salloc.
func TestClientsAreUnchanged(t *testing.T) {
	const show = "grep -h -e Sig -e 'open files' /proc/self/status /proc/self/limits | grep -v -e SigQ -e SigPnd -e ShdPnd"
	plain := harness.Start(t, harness.Options{})
	c := sharedCluster(t)
	for name, run := range map[string]func(c *harness.Cluster, option ...string) string{
		"srun": func(c *harness.Cluster, option ...string) string {
			return c.Run(harness.Alice, append(append([]string{"srun"}, option...), "sh", "-c", show)...).Stdout
		},
		"sbatch": func(c *harness.Cluster, option ...string) string {
			return c.Batch(harness.Alice, show, option...).Output
		},
		"salloc": func(c *harness.Cluster, option ...string) string {
			return c.Run(harness.Alice, append(append([]string{"salloc", "-Q"}, option...), "sh", "-c", show)...).Stdout
		},
	} {
		want := run(plain)
		assert.Contains(t, want, "Max open files", name)
		assert.Equal(t, want, run(c, "--jail=debian"), name)
	}
}

func TestNoDescriptorOfThePluginInATask(t *testing.T) {
	plain := harness.Start(t, harness.Options{})
	c := sharedCluster(t)
	list := func(c *harness.Cluster, option ...string) string {
		r := c.Run(harness.Alice, append(append([]string{"srun"}, option...), "sh", "-c", "ls /proc/self/fd; ls -l /proc/self/fd | grep -c -e ns: -e gojail -e /srv")...)
		return r.Stdout
	}
	want := list(plain)
	assert.Equal(t, want, list(c, "--jail=debian"), "the first step of a job")
	writeOnNode(t, c, "/data/alice/file", "")
	assert.Equal(t, want, list(c, "--jail=debian", "--jail-mount=/data/alice:/mnt"))
	job := c.Batch(harness.Alice, "ls /proc/self/fd | wc -l; srun ls /proc/self/fd | wc -l", "--jail=debian")
	bare := plain.Batch(harness.Alice, "ls /proc/self/fd | wc -l; srun ls /proc/self/fd | wc -l")
	assert.Equal(t, bare.Output, job.Output)
}

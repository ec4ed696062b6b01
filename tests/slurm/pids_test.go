// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// printPID prints the PID of a task's shell.
var printPID = []string{"sh", "-c", "echo $$"}

// readStepPIDs starts a step and returns the PIDs of its tasks' shells.
func readStepPIDs(t *testing.T, c *harness.Cluster, options ...string) []int {
	t.Helper()
	return readNumbers(t, c.Run(harness.Alice, slices.Concat([]string{"srun"}, options, printPID)...))
}

// reservedPIDs is the number below which the kernel reuses no PIDs (kernel/pid.c).
const reservedPIDs = 300

// readNumbers returns the lines of a result as numbers.
func readNumbers(t *testing.T, r harness.Result) (numbers []int) {
	t.Helper()
	require.Zero(t, r.Code, r)
	for _, word := range strings.Fields(r.Stdout) {
		number, err := strconv.Atoi(word)
		require.NoError(t, err, r)
		numbers = append(numbers, number)
	}
	return numbers
}

// requireApart requires that PIDs of sandboxes have room to count up without meeting, and are such as a node's.
func requireApart(t *testing.T, pids []int, room int) {
	t.Helper()
	pids = slices.Sorted(slices.Values(pids))
	require.Greater(t, pids[0], reservedPIDs, "%v", pids)
	for i := range pids[1:] {
		require.Greater(t, pids[i+1]-pids[i], room, "%v", pids)
	}
}

// TestFilesNamedByPID on shared storage are as many with a jail as without.
func TestFilesNamedByPID(t *testing.T) {
	c := sharedCluster(t)
	for jail, home := range map[string]string{"none": "/home/alice/", "debian": jailHome} {
		r := c.Run(harness.Alice, "sbatch", "--wait", "--array=1-6", "--jail="+jail, "-o", "/dev/null",
			"--wrap", "echo $SLURM_ARRAY_TASK_ID >~/scratch.$$")
		require.Zero(t, r.Code, r)
		files, err := filepath.Glob(c.Path(home) + "/scratch.*")
		require.NoError(t, err)
		for _, file := range files {
			require.NoError(t, os.Remove(file))
		}
		assert.Len(t, files, 6, jail)
	}
}

// TestPIDsDifferBetweenNodes, in each step of a job, and from those that the same command has in the next job.
func TestPIDsDifferBetweenNodes(t *testing.T) {
	c := sharedCluster(t)
	var all []int
	for range 3 { // in sandboxes that are made when they are asked for, and in those that were begun before
		pids := readStepPIDs(t, c, "-N2", "--jail=debian")
		require.Len(t, pids, 2)
		all = append(all, pids...)
	}
	slices.Sort(all)
	assert.Len(t, slices.Compact(all), 6, "%v", all)
}

// TestPIDsOfManyJobs of a node: each can start hundreds of processes before its PIDs are those of another.
func TestPIDsOfManyJobs(t *testing.T) {
	c := sharedCluster(t)
	var pids []int
	for range 12 {
		pids = append(pids, readStepPIDs(t, c, "-wn1", "--jail=debian")...)
	}
	limit := readNumbers(t, c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", "/proc/sys/kernel/pid_max"))[0]
	requireApart(t, pids, limit/100)
	assert.Less(t, slices.Max(pids), limit)
}

// TestPIDsOfEachKindOfSandbox count as those of a node do; a job's steps have one counter, and the holder as process 1.
func TestPIDsOfEachKindOfSandbox(t *testing.T) {
	c := sharedCluster(t)
	roots := "[jail.debian]\njail_root = [\"range\", \"self\"]\n"
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", roots, 1))
	allowRange(t, c)
	_, job := allocate(t, c)
	first := readStepPIDs(t, c, "--jobid="+job, "--jail=debian")[0]
	all := slices.Concat([]int{first},
		readStepPIDs(t, c, "-wn1", "--jail=debian", "--jail-root=self"),
		readStepPIDs(t, c, "-wn1", "--jail=debian", "--jail-root=range"),
		readStepPIDs(t, c, "-wn1", "--jail=debian", "--jail-mount=/data:/mnt"),
		readNumbers(t, c.Gojail("n1", slices.Concat([]string{"run", "debian", "--"}, printPID)...)),
	)
	requireApart(t, all, 5)
	enter := []string{"enter", "--sandbox=debian", job, "--"}
	for _, pids := range [][]int{
		readStepPIDs(t, c, "--jobid="+job, "--jail=debian"),
		readStepPIDs(t, c, "--jobid="+job, "--jail=debian", "--jail-root=self"),
		readStepPIDs(t, c, "--jobid="+job, "--jail=other"),
		readNumbers(t, c.Gojail("n1", slices.Concat(enter, printPID)...)),
	} {
		assert.InDelta(t, first, pids[0], 100, "it goes on where the job's first step was")
	}
	holder := "/proc/" + strconv.Itoa(readRecordPid(t, c, "jobs/"+job+"/debian"))
	requireOutput(t, "gojail-holder\n1", c.Root("sh", "-c", "cat "+holder+"/comm; sed -n 's/^NSpid:.*\t//p' "+holder+"/status"))
}

// TestPIDsWhereSysIsReadOnly, as in containers.
func TestPIDsWhereSysIsReadOnly(t *testing.T) {
	c := sharedCluster(t)
	r := c.Root("sh", "-c", `mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys
echo 7 >/proc/sys/kernel/ns_last_pid`)
	t.Cleanup(func() {
		c.Root("umount", "/proc/sys")
		c.Gojail("n1", "reload", "debian")
	})
	require.Contains(t, r.Stderr, "Read-only file system", r)
	require.Zero(t, c.Gojail("n1", "reload", "debian").Code)
	for range 2 {
		require.Greater(t, readStepPIDs(t, c, "-wn1", "--jail=debian")[0], reservedPIDs)
	}
}

// TestPIDsOfTheNode: a jail without a PID namespace leaves the node's counter as it is.
func TestPIDsOfTheNode(t *testing.T) {
	c := sharedCluster(t)
	own := "[jail.debian]\nnamespaces = [\"ipc\"]\n"
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", own, 1))
	var pids []int
	for _, jail := range []string{"none", "debian", "debian", "none"} {
		pids = append(pids, readStepPIDs(t, c, "-wn1", "--jail="+jail)...)
	}
	assert.True(t, slices.IsSorted(pids), fmt.Sprint(pids))
}

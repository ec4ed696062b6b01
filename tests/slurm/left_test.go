// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// spareName is a scratch directory that the end of a job made for a job to come.
const spareName = `spare\.([12]?[0-9]|3[01])`

// notOurs are the lines of an inventory that jobs do change: what slurmd keeps
// (sockets of a slurmstepd that was killed, too), and spares and trash, which requireOnlySpares judges.
var notOurs = regexp.MustCompile(`/cred_state|hwloc_topo|/var/spool/slurmd/(n[12])/n[12]_\d+\.\d+$` +
	`|^file /var/lib/gojail/n[12]/jobs/(` + spareName + `(/tmp)?|\.trash)$`)

// circumstances match what a zygote's command line says of its start: the rest of the deadline, and the zygote that it replaced.
var circumstances = regexp.MustCompile(` (deadline=\d+|replace=\S+)`)

// waitForInventory waits for the end of all jobs, and returns the machine's inventory. A spare may be in it.
func waitForInventory(t *testing.T, c *harness.Cluster) (inventory []string) {
	t.Helper()
	require.True(t, c.WaitIdle(), c.Drained())
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		last := inventory
		inventory = slices.DeleteFunc(c.Inventory("/run/gojail", "/var/lib/gojail", "/var/spool/slurmd", "/tmp", "/dev/shm"), notOurs.MatchString)
		for i, line := range inventory {
			inventory[i] = circumstances.ReplaceAllString(line, "")
		}
		slices.Sort(inventory) // processes are in the order of their numbers, which begin anew after some ten thousand
		return slices.Equal(last, inventory)
	}), "%q", inventory)
	return inventory
}

// assembleTemplates assembles the templates of the jail debian, and returns the machine's inventory then.
func assembleTemplates(t *testing.T, c *harness.Cluster) []string {
	t.Helper()
	for _, node := range harness.Nodes {
		requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-w"+node, "--jail=debian", "cat", marker))
	}
	return waitForInventory(t, c)
}

// requireNothingLeft requires that the machine has what it had before, and spares at most. A process of a template may be missing: a spare
// or spare that was killed is forked anew when somebody asks for it.
func requireNothingLeft(t *testing.T, c *harness.Cluster, before []string) {
	t.Helper()
	var after []string
	same := harness.Poll(harness.Timeout, func() bool {
		after = waitForInventory(t, c)
		gone := slices.DeleteFunc(subtract(before, after), func(line string) bool { return strings.HasPrefix(line, "process ") })
		return len(gone) == 0 && len(subtract(after, before)) == 0
	})
	assert.True(t, same, "gone: %q\nleft: %q", subtract(before, after), subtract(after, before))
	requireOnlySpares(t, c)
}

// subtract returns the elements of one list that the other lacks, or has less often.
func subtract(one, other []string) (only []string) {
	other = slices.Clone(other)
	for _, line := range one {
		if i := slices.Index(other, line); i >= 0 {
			other = slices.Delete(other, i, i+1)
		} else {
			only = append(only, line)
		}
	}
	return only
}

// requireOnlySpares requires that the scratch directories of idle nodes have nothing but spares: at most 32 new
// directories, owned by root, each with an empty tmp. A process that Slurm does not wait for empties the trash.
func requireOnlySpares(t *testing.T, c *harness.Cluster) {
	t.Helper()
	for _, node := range harness.Nodes {
		jobs := c.Path("/var/lib/gojail/" + node + "/jobs")
		harness.Poll(harness.Timeout, func() bool { _, err := os.Lstat(filepath.Join(jobs, ".trash")); return os.IsNotExist(err) })
		spares, err := os.ReadDir(jobs)
		if !os.IsNotExist(err) { // no job has been there yet
			require.NoError(t, err)
		}
		for _, entry := range spares {
			spare := filepath.Join(jobs, entry.Name())
			assert.Regexp(t, "^"+spareName+"$", entry.Name(), node)
			assert.Equal(t, "drwx------ 0", describeFile(t, spare), spare)
			inside, err := os.ReadDir(spare)
			require.NoError(t, err)
			if assert.Len(t, inside, 1, spare) {
				tmp := filepath.Join(spare, inside[0].Name())
				assert.Equal(t, "tmp", inside[0].Name(), spare)
				assert.Equal(t, "dtrwxrwxrwx 0", describeFile(t, tmp), tmp)
				files, err := os.ReadDir(tmp)
				require.NoError(t, err)
				assert.Empty(t, files, tmp)
			}
		}
	}
}

// describeFile returns the mode and the owner of a file.
func describeFile(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info.Mode().String() + " " + formatNumber(uint64(info.Sys().(*syscall.Stat_t).Uid))
}

// TestNothingIsLeftBehind: the template stays, all that belongs to jobs goes.
func TestNothingIsLeftBehind(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	for i := range 4 {
		c.Run(harness.Alice, "srun", "-N2", "--jail=debian", "touch", "/tmp/file", "/dev/shm/file")
		c.Run(harness.Alice, "srun", "--jail=debian", "sh", "-c", "exit 1")
		runAndKill(t, c, i%2 == 0)
	}
	requireNothingLeft(t, c, before)
}

// TestSparesAreFew: as many jobs end at once as there may be spares, and more.
func TestSparesAreFew(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	submit := c.Do(harness.Command{User: harness.Alice, Stdin: "#!/bin/sh\nexec sleep 4321\n",
		Args: []string{"sbatch", "--parsable", "--jail=debian", "-wn1", "--array=1-12", "--output=/dev/null"}})
	require.Zero(t, submit.Code, submit)
	id := strings.TrimSpace(submit.Stdout)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("sleep 4321")) == 12 }))
	c.Run(harness.Alice, "scancel", id)
	requireNothingLeft(t, c, before)
	spares, err := os.ReadDir(c.Path("/var/lib/gojail/n1/jobs"))
	require.NoError(t, err)
	assert.LessOrEqual(t, len(spares), 32)
	assert.NotEmpty(t, spares, "none is made: the first step of a job pays for it")
}

// runAndKill runs a job and ends it by scancel, or by SIGKILL of its slurmstepd.
func runAndKill(t *testing.T, c *harness.Cluster, brutally bool) {
	t.Helper()
	submit := c.Do(harness.Command{User: harness.Alice, Stdin: "#!/bin/sh\ntouch /tmp/x\nsleep 4321\n",
		Args: []string{"sbatch", "--parsable", "--no-requeue", "--jail=debian", "--output=/dev/null"}})
	require.Zero(t, submit.Code, submit)
	id := strings.TrimSpace(submit.Stdout)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("sleep 4321")) > 0 }))
	if brutally {
		killProcesses(c, "slurmstepd: ["+id)
	}
	c.Run(harness.Alice, "scancel", id)
	if brutally { // with proctrack/linuxproc nobody else ends the tasks of a lost slurmstepd
		killProcesses(c, "/slurm_script") // not "slurm_script_launcher", which starts epilogs from 26.05 on
		killProcesses(c, "sleep 4321")
	}
}

// killProcesses ends every process of the cluster whose command line contains the text.
func killProcesses(c *harness.Cluster, text string) {
	for _, p := range c.Find(text) {
		c.Root("kill", "-KILL", formatNumber(uint64(p.Pid)))
	}
}

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
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/tests/harness"
)

// allocate allocates a job without tasks, and returns a function that runs its steps one by one.
func allocate(t *testing.T, c *harness.Cluster) (step func(script string) harness.Result, id string) {
	t.Helper()
	r := c.Run(harness.Alice, "salloc", "--no-shell", "-wn1", "-n1")
	require.Zero(t, r.Code, r)
	_, id, _ = strings.Cut(strings.TrimSpace(r.Stderr), "job allocation ")
	id = strings.Fields(id)[0]
	t.Cleanup(func() { c.Run(harness.Alice, "scancel", id) })
	return func(script string) harness.Result {
		return c.Run(harness.Alice, "srun", "--jobid="+id, "--jail=debian", "sh", "-c", script)
	}, id
}

func TestSlurmdRestartBetweenTwoSteps(t *testing.T) {
	c := sharedCluster(t)
	step, _ := allocate(t, c)
	requireOutput(t, "debian", step("touch /tmp/first; cat "+marker))
	require.NoError(t, c.RestartSlurmd("n1"))
	requireOutput(t, "debian\n/tmp/first", step("cat "+marker+"; ls /tmp/first"))
}

// TestHolderKilledBetweenTwoSteps: a new one takes its place, and /tmp, a directory of the node, is still there.
func TestHolderKilledBetweenTwoSteps(t *testing.T) {
	c := sharedCluster(t)
	step, id := allocate(t, c)
	requireOutput(t, "debian", step("touch /tmp/first; cat "+marker))
	record, err := os.ReadFile(c.Path("/run/gojail/n1/jobs/" + id + "/debian"))
	require.NoError(t, err)
	c.Root("kill", "-KILL", strings.Fields(string(record))[1])
	requireOutput(t, "debian\n/tmp/first", step("cat "+marker+"; ls /tmp/first"))
}

// TestNumberOfAHolderIsReused: the record of a sandbox whose holder is gone tells of the number that the holder of another
// sandbox of the job has by now.
func TestNumberOfAHolderIsReused(t *testing.T) {
	c := sharedCluster(t)
	debian, id := allocate(t, c)
	other := func() harness.Result {
		return c.Run(harness.Alice, "srun", "--jobid="+id, "--jail=other", "cat", marker)
	}
	requireOutput(t, "debian", debian("cat "+marker))
	requireOutput(t, "other", other())
	record := "/run/gojail/n1/jobs/" + id + "/other"
	pid, killed := readRecordPid(t, c, "jobs/"+id+"/debian"), readRecordPid(t, c, "jobs/"+id+"/other")
	c.Root("kill", "-KILL", strconv.Itoa(killed))
	text := strings.Replace(readFile(c, record), fmt.Sprintf(" %d ", killed), fmt.Sprintf(" %d ", pid), 1)
	require.NoError(t, os.WriteFile(c.Path(record), []byte(text), 0o600))
	requireOutput(t, "other", other())
	assert.NotEqual(t, pid, readRecordPid(t, c, "jobs/"+id+"/other"))
	requireOutput(t, "debian", debian("cat "+marker))
}

func TestZygoteKilled(t *testing.T) {
	c := sharedCluster(t)
	step, _ := allocate(t, c)
	requireOutput(t, "debian", step("touch /tmp/first; cat "+marker))
	c.Root("kill", "-KILL", strconv.Itoa(readRecordPid(t, c, "jails/debian/zygote")))
	requireOutput(t, "debian\n/tmp/first", step("cat "+marker+"; ls /tmp/first"))
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
}

// TestZygoteWhoseCallerIsGone: a template is replaced for a caller that ends meanwhile, and its zygote lives on, as the one before is gone.
func TestZygoteWhoseCallerIsGone(t *testing.T) {
	c := sharedCluster(t)
	assembleTemplates(t, c)
	record := strings.Fields(readFile(c, "/run/gojail/n1/jails/debian/zygote"))
	require.Greater(t, len(record), 2)
	zygote, err := c.Process(readRecordPid(t, c, "jails/debian/zygote"))
	require.NoError(t, err)
	launcher := strings.Replace(zygote.Command, " key=", " replace="+record[1]+":"+record[2]+" key=", 1)
	require.NotEqual(t, zygote.Command, launcher)
	runAsRoot(t, c, "{ sleep 0.1; "+launcher+" 3>&1 >/dev/null 2>&1; } | true")
	require.True(t, harness.Poll(harness.Timeout, func() bool { return readRecordPid(t, c, "jails/debian/zygote") != zygote.Pid }))
	assert.True(t, harness.Poll(harness.Timeout, func() bool { _, err := c.Process(zygote.Pid); return err != nil }), "the one before lives on")
	requireOneZygote(t, c, "n1")
	_, err = c.Process(readRecordPid(t, c, "jails/debian/zygote"))
	assert.NoError(t, err, "the new one has ended")
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
}

// TestZygoteStopped: the deadline ends the launch, and steps of running jobs need no zygote.
func TestZygoteStopped(t *testing.T) {
	c := sharedCluster(t)
	step, _ := allocate(t, c)
	requireOutput(t, "debian", step("cat "+marker))
	pid := strconv.Itoa(readRecordPid(t, c, "jails/debian/zygote"))
	require.Zero(t, c.Root("kill", "-STOP", pid).Code)
	defer c.Root("kill", "-CONT", pid)
	requireOutput(t, "debian", step("cat "+marker))
	r := c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "sh", "-c", task)
	assert.NotContains(t, r.Stdout, "ran in node")
	assert.Less(t, r.Duration, 5*time.Second*harness.Slow+harness.Late, r)
	if r.Code != 0 {
		requireRefused(t, "debian", r)
	}
}

// TestDamagedState: records that are cut short, lie or are rubbish count as absent.
func TestDamagedState(t *testing.T) {
	c := sharedCluster(t)
	assembleTemplates(t, c)
	other := fmt.Sprintf("%d %d 1 0123456789abcdef 0\n", contract.Version, c.Find("slurmctld")[0].Pid) // its pid was given to another process
	for _, damage := range []string{"", "1", "1 1 1 0123456789abcdef 0\n", other, "\x00\xff\n", strings.Repeat("9", 10_000)} {
		step, id := allocate(t, c)
		requireOutput(t, "debian", step("cat "+marker))
		record := c.Path("/run/gojail/n1/jobs/" + id + "/debian")
		require.NoError(t, os.WriteFile(record, []byte(damage), 0o600))
		requireOutput(t, "debian", step("cat "+marker))
		require.NoError(t, os.WriteFile(c.Path("/run/gojail/n1/jails/debian/zygote"), []byte(damage), 0o600))
		requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
		require.NoError(t, os.WriteFile(c.Path("/run/gojail/n1/site"), []byte(damage), 0o600))
		requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
		c.Run(harness.Alice, "scancel", id)
	}
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn2", "--jail=debian", "cat", marker))
	require.True(t, c.WaitIdle())
	r := c.Gojail("n1", "sweep")
	require.Zero(t, r.Code, r)
	assert.Contains(t, r.Stdout, "whose record is lost")
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return countHolders(c) == 0 }), "a holder is left")
	for _, node := range harness.Nodes {
		requireOneZygote(t, c, node)
	}
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
}

// TestSweepLeavesWhoIsAlive: a record is lost while its job runs.
func TestSweepLeavesWhoIsAlive(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	step, id := allocate(t, c)
	done := make(chan harness.Result)
	go func() { done <- step("sleep 4321 || cat " + marker) }()
	record := c.Path("/run/gojail/n1/jobs/" + id + "/debian")
	sleeps := func(p harness.Process) bool { return p.Status["Name"] == "sleep" }
	require.True(t, harness.Poll(harness.Timeout, func() bool { return slices.ContainsFunc(c.Find("sleep 4321"), sleeps) && countHolders(c) == 1 }))
	text, err := os.ReadFile(record)
	require.NoError(t, err)
	require.NoError(t, os.Remove(record))
	shares := filepath.Join(filepath.Dir(record), ".ns") // tells of it, too
	require.NoError(t, os.Rename(shares, shares+".away"))
	r := c.Gojail("n1", "sweep")
	assert.Zero(t, r.Code, r)
	assert.Contains(t, r.Stdout, "processes are in its sandbox")
	require.NoError(t, os.WriteFile(record, text, 0o600))
	require.NoError(t, os.Rename(shares+".away", shares))
	r = c.Gojail("n1", "sweep")
	assert.NotContains(t, r.Stdout, "lost")
	for _, p := range c.Find("sleep 4321") {
		if sleeps(p) {
			c.Root("kill", formatNumber(uint64(p.Pid)))
		}
	}
	requireOutput(t, "debian", <-done)
	c.Run(harness.Alice, "scancel", id)
	requireNothingLeft(t, c, before)
}

// TestConfigurationChangesReachTheNextJob: an old template is not used for it.
func TestConfigurationChangesReachTheNextJob(t *testing.T) {
	c := sharedCluster(t)
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "--jail=debian", "cat", marker))
	configure(t, c, addMount("/mnt")(harness.DefaultConfig))
	writeOnNode(t, c, filepath.Join("/data/shared", "new"), "new\n")
	requireOutput(t, "new", c.Run(harness.Alice, "srun", "--jail=debian", "cat", "/mnt/new"))
}

// TestFirstJobOfANodeMounts: a job with mounts of its user may be the one that makes the template.
func TestFirstJobOfANodeMounts(t *testing.T) {
	c := sharedCluster(t)
	dropTemplates(t, c)
	writeOnNode(t, c, "/data/alice/file", "of the node\n")
	r := c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-mount=/data/alice:/mnt", "cat", "/mnt/file")
	requireOutput(t, "of the node", r)
}

// TestRecordsOfAnotherVersion: after an upgrade nobody asks the processes of before. Running steps go on, further steps of their job are
// refused, and each process is ended in its time.
func TestRecordsOfAnotherVersion(t *testing.T) {
	c := sharedCluster(t)
	dropTemplates(t, c) // the reload below ends the zygote of any other jail, too
	before := assembleTemplates(t, c)
	older := func(record string) (pid int) {
		pid = readRecordPid(t, c, record)
		text := readFile(c, "/run/gojail/n1/"+record)
		_, rest, _ := strings.Cut(text, " ")
		replaceFile(t, c.Path("/run/gojail/n1/"+record), "1 "+rest)
		return pid
	}
	gone := func(pid int) bool {
		return harness.Poll(harness.Timeout, func() bool { _, err := c.Process(pid); return err != nil })
	}
	_, id := allocate(t, c)
	step := func(options ...string) harness.Result {
		return c.Run(harness.Alice, slices.Concat([]string{"srun"}, options, []string{"--jobid=" + id, "--overlap", "--jail=debian", "cat", marker})...)
	}
	requireOutput(t, "debian", step())
	running := make(chan harness.Result, 1)
	go func() {
		running <- c.Run(harness.Alice, "srun", "--jobid="+id, "--overlap", "--jail=debian", "sh", "-c", "touch /home/alice/in; until [ -e /home/alice/out ]; do sleep 0.1; done; cat "+marker)
	}()
	require.True(t, harness.Poll(harness.Timeout, func() bool { return c.Root("test", "-e", jailHome+"in").Code == 0 }))
	holder := older("jobs/" + id + "/debian")
	const refused = "another version was installed on this node while this job runs, and a new step cannot enter the job's sandbox: its running steps go on; submit what remains as a new job"
	for _, r := range []harness.Result{step(), step("--jail-mount=/home:/mnt")} {
		requireRefused(t, refused, r)
	}
	assert.Regexp(t, `(?m)^`+id+` +debian +`+strconv.Itoa(holder)+` .* alice +\d+ +foreign +-$`, c.Gojail("n1", "ls").Stdout)
	assert.Contains(t, c.Gojail("n1", "check").Stdout, "WARN  jobs: a version of gojail with another contract made the sandboxes of these jobs, whose running steps go on and whose "+
		"further steps are refused: "+id+"; drain the node")
	r := c.Gojail("n1", "enter", id, "--", "true")
	assert.NotZero(t, r.Code)
	assert.Contains(t, r.Stderr, "the sandbox of job "+id+" is of a version of gojail with another contract")
	r = c.Gojail("n1", "sweep")
	require.Zero(t, r.Code, r)
	require.Zero(t, c.Root("touch", jailHome+"out").Code)
	requireOutput(t, "debian", <-running)
	require.Zero(t, c.Root("rm", jailHome+"in", jailHome+"out").Code)
	c.Run(harness.Alice, "scancel", id)
	assert.True(t, gone(holder), "the holder of a job that has ended lives on")

	zygote := older("jails/debian/zygote")
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
	assert.True(t, gone(zygote), "the zygote in whose place there is another lives on")
	for _, command := range []string{"reload", "sweep"} {
		zygote = older("jails/debian/zygote")
		r = c.Gojail("n1", command)
		require.Zero(t, r.Code, r)
		assert.True(t, gone(zygote), command)
		requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
	}
	requireNothingLeft(t, c, before)
}

// countHolders returns the number of sandboxes that are held or being built.
func countHolders(c *harness.Cluster) (count int) {
	for _, p := range c.Processes() {
		if name := p.Status["Name"]; name == "gojail-holder" || name == "gojail-builder" {
			count++
		}
	}
	return count
}

// requireOneZygote waits until a node has one template of the jail debian: a child that the zygote has just forked
// still has its name.
func requireOneZygote(t *testing.T, c *harness.Cluster, node string) {
	t.Helper()
	var found []string
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		found = nil
		for _, p := range c.Find("state=/run/gojail/" + node + " ") {
			if p.Status["Name"] == "gojail-zygote" && strings.Contains(p.Command, " jail=debian ") {
				found = append(found, fmt.Sprintf("%d of %s", p.Pid, p.Status["PPid"]))
			}
		}
		return len(found) == 1
	}), "zygotes on %s: %s", node, found)
}

// TestHolderWithoutRecordEnds: no later step, and no sweep, could find it.
func TestHolderWithoutRecordEnds(t *testing.T) {
	c := sharedCluster(t)
	before := assembleTemplates(t, c)
	step, id := allocate(t, c)
	blocked := c.Path("/run/gojail/n1/jobs/" + id + "/debian")
	require.NoError(t, os.MkdirAll(filepath.Join(blocked, "full"), 0o700))
	requireRefused(t, "record", step(task))
	require.NoError(t, os.RemoveAll(blocked))
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return countHolders(c) == 0 }), "a holder is left")
	requireOutput(t, "debian", step("cat "+marker))
	c.Run(harness.Alice, "scancel", id)
	requireNothingLeft(t, c, before)
}

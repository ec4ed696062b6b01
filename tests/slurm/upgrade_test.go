// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// replaceGojail installs what change makes of each file of gojail, as dpkg does: a new file is renamed over the old one.
func replaceGojail(t *testing.T, c *harness.Cluster, change func(path string, text []byte) []byte) {
	t.Helper()
	for _, dir := range []string{lib, harness.Prefix + "/sbin"} {
		require.NoError(t, filepath.WalkDir(c.Path(dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			info, err := entry.Info()
			require.NoError(t, err)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path+".dpkg-new", change(path, text), 0o600))
			require.NoError(t, os.Chmod(path+".dpkg-new", info.Mode()&(fs.ModePerm|fs.ModeSetuid)))
			return os.Rename(path+".dpkg-new", path)
		}))
	}
}

// findOldFiles returns the processes that run from files of gojail which an upgrade has replaced.
func findOldFiles(c *harness.Cluster) (old []string) {
	for _, p := range c.Processes() {
		maps := readFile(c, fmt.Sprintf("/proc/%d/maps", p.Pid))
		for line := range strings.Lines(maps) {
			if strings.Contains(line, lib) && strings.HasSuffix(line, "(deleted)\n") {
				old = append(old, p.Command)
				break
			}
		}
	}
	return old
}

// TestUpgradeUnderJobs: from an earlier version with the same contract, while a batch job, a session in it and a step run. They go on,
// with further steps and sessions; the next job has the new version; no node is drained and nothing of the earlier version stays.
func TestUpgradeUnderJobs(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian", "other"}, SlurmConf: prolog, Files: sessionFiles})
	prepareSessions(t, c)
	version := strings.TrimSuffix(strings.Fields(c.Root("gojail", "version").Stdout)[1], ",")
	require.Regexp(t, "^[1-9]|^0\\.[1-9]", version)
	earlier := strings.Replace(version, version[:3], "0.0", 1) // of the same length: it takes the place of the version in the binaries
	now := map[string][]byte{}
	replaceGojail(t, c, func(path string, text []byte) []byte {
		now[path] = text
		return bytes.ReplaceAll(text, []byte(version), []byte(earlier))
	})
	require.Contains(t, c.Root("gojail", "version").Stdout, earlier)
	for _, node := range harness.Nodes {
		require.Zero(t, c.Gojail(node, "reload").Code)
		require.NoError(t, c.RestartSlurmd(node))
	}
	require.True(t, c.WaitIdle())

	const wait = "until [ -e /home/alice/upgraded ]; do sleep 0.1; done; cat " + marker
	job := submitScript(t, c, "echo begun\n"+wait+"\nsrun cat "+marker+"\necho done\n", "--jail=debian", "-wn1")
	step := make(chan harness.Result)
	go func() {
		step <- c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "sh", "-c", "touch /home/alice/runs; "+wait)
	}()
	output := jailHome + "slurm-" + job + ".out"
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		return readFile(c, output) == "begun\n" && c.Root("test", "-e", jailHome+"runs").Code == 0
	}))
	session := upgradedSession{c, job}
	endSession := session.start(t)

	replaceGojail(t, c, func(path string, _ []byte) []byte { return now[path] })
	assert.Contains(t, c.Root("gojail", "version").Stdout, version)
	assert.Contains(t, strings.Join(findOldFiles(c), "\n"), "slurmstepd: ["+job+".batch]")
	// by returns what gojail ls says of which version made a sandbox of the job, and assembled the jail.
	by := func() string {
		list := c.Gojail("n1", "ls").Stdout
		sandbox := regexp.MustCompile(`(?m)^` + job + ` +debian +\d+ +(\S+)`).FindStringSubmatch(list)
		template := regexp.MustCompile(`(?s)ASSEMBLED JAIL.*\ndebian +[\d-]+ +(\S+)`).FindStringSubmatch(list)
		require.True(t, len(sandbox) == 2 && len(template) == 2, list)
		return sandbox[1] + " " + template[1]
	}
	// The template ends by itself where a file of gojail that it shows was replaced.
	assert.Contains(t, []string{earlier + " " + earlier, earlier + " -"}, by())
	// The next job, at each stage of docs/upgrades.md.
	next := func() {
		t.Helper()
		requireOutput(t, "debian\nother", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "sh", "-c", "cat "+marker+"; srun -Q --overlap --jail=other cat "+marker))
	}
	next()
	for _, node := range harness.Nodes {
		for _, args := range [][]string{{"init", "debian"}, {"init", "other"}, {"reload"}} {
			r := c.Gojail(node, args...)
			require.Zero(t, r.Code, r)
		}
		next()
		require.NoError(t, c.RestartSlurmd(node))
		r := c.Gojail(node, "check")
		assert.NotContains(t, r.Stdout, "FAIL", r)
	}
	next()
	assert.Equal(t, earlier+" "+version, by())

	requireOutput(t, "debian", session.run(t, "cat "+marker))
	endSession()
	require.Zero(t, c.Root("touch", jailHome+"upgraded").Code)
	requireOutput(t, "debian", <-step)
	assert.Equal(t, "COMPLETED", c.WaitJob(harness.Job{ID: job}).State)
	assert.Equal(t, "begun\ndebian\ndebian\ndone\n", readFile(c, output))
	assert.True(t, c.WaitIdle(), c.Drained())
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(findOldFiles(c)) == 0 }), "%v", findOldFiles(c))
}

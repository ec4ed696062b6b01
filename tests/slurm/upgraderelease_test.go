// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// lastRelease is the commit of the last release, as CHANGELOG.md says.
const lastRelease = "d74b302"

// buildLastRelease builds the last release from the history of this repository, once, and returns the directory of its programs.
func buildLastRelease(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("../releases/earlier", lastRelease).Output()
	dir := strings.TrimSpace(string(out))
	if failed := new(exec.ExitError); errors.As(err, &failed) && failed.ExitCode() == 3 {
		t.Skip(dir)
	}
	require.NoError(t, err)
	return filepath.Join("../..", dir, "build")
}

// installRelease replaces each file of gojail by that of a directory, and returns what was there before.
func installRelease(t *testing.T, c *harness.Cluster, from string) (before map[string][]byte) {
	t.Helper()
	before = map[string][]byte{}
	replaceGojail(t, c, func(path string, text []byte) []byte {
		before[path] = text
		dir := map[bool]string{true: "sbin", false: "lib/gojail"}[filepath.Base(filepath.Dir(path)) == "sbin"]
		release, err := os.ReadFile(filepath.Join(from, dir, filepath.Base(path)))
		if err != nil {
			return text // a program that the release lacks
		}
		return release
	})
	return before
}

// startEachRoot starts a job of one interactive step on n1 for each --jail-root. It returns a function that ends them, and requires a
// good end.
func startEachRoot(t *testing.T, c *harness.Cluster) (end func()) {
	t.Helper()
	steps := make(chan harness.Result, 3)
	const wait = "touch /tmp/begun; until [ -e /tmp/go ]; do sleep 0.1; done; cat " + marker
	roots := []string{"none", "self", "range"}
	for _, root := range roots {
		go func() {
			steps <- c.Run(harness.Alice, "srun", "-Q", "-wn1", "--chdir=/tmp", "--jail=debian", "--jail-root="+root, "sh", "-c", wait)
		}()
	}
	list := func() (found []string) {
		found, err := filepath.Glob(c.Path("/var/lib/gojail/n1/jobs/*/tmp/begun"))
		require.NoError(t, err)
		return found
	}
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(list()) == len(roots) }), "%q", list())
	return func() {
		t.Helper()
		for _, begun := range list() {
			require.NoError(t, os.WriteFile(strings.TrimSuffix(begun, "begun")+"go", nil, 0o644))
		}
		for range roots {
			requireOutput(t, "debian", <-steps)
		}
	}
}

// TestUpgradeFromTheLastRelease: to this tree and back, over another contract, on a node that is not drained. What runs, sessions included,
// goes on and ends well, a further step or session is refused in one line, but a step by 0.1.0 is not, new jobs work at each moment, and
// nothing is left.
func TestUpgradeFromTheLastRelease(t *testing.T) {
	release := buildLastRelease(t)
	config := strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"range\", \"self\"]\n", 1) + loginTable
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian", "other"}, Config: config, SlurmConf: prolog, Files: sessionFiles})
	allowRange(t, c)
	prepareSessions(t, c)
	contracts := [2]string{}
	change := func(contract *string, install func()) {
		t.Helper()
		install()
		_, *contract, _ = strings.Cut(c.Root("gojail", "version").Stdout, "contract ")
		requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
		require.Zero(t, c.Gojail("n1", "init", "debian").Code)
		for _, node := range []string{"n1", "login1"} {
			require.Zero(t, c.Gojail(node, "reload").Code)
		}
		requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
		for _, node := range harness.Nodes {
			require.NoError(t, c.RestartSlurmd(node))
		}
		requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
	}
	var now map[string][]byte
	toRelease := func() {
		if before := installRelease(t, c, release); now == nil {
			now = before
		}
	}
	change(&contracts[0], toRelease)
	require.True(t, c.WaitIdle())

	const wait = "until [ -e /home/alice/changed ]; do sleep 0.1; done; cat " + marker
	begin := func() (job string) {
		job = submitScript(t, c, "echo begun\n"+wait+"\nsrun -Q --overlap cat "+marker+"\necho done\n", "--jail=debian", "-wn1")
		require.True(t, harness.Poll(harness.Timeout, func() bool { return readOutput(c, job) == "begun\n" }))
		return job
	}
	job, end := begin(), startEachRoot(t, c)
	login := upgradedSession{c: c}
	endLogin, endSession := login.start(t), upgradedSession{c, job}.start(t)
	change(&contracts[1], func() { replaceGojail(t, c, func(path string, _ []byte) []byte { return now[path] }) })
	require.NotEqual(t, contracts[0], contracts[1])
	assert.Regexp(t, `(?m)^`+job+` +debian +\d+ +0\.1\.0 .* alice +\d+ +foreign +-$`, c.Gojail("n1", "ls").Stdout)
	assert.NotContains(t, c.Gojail("n1", "check").Stdout, "FAIL")
	harness.RequireRefused(t, "another version was installed on this node while your job "+job+" runs", upgradedSession{c, job}.run(t, "true"))
	harness.RequireRefused(t, "processes of yours on this node are in a sandbox of another version of gojail", login.run(t, "true"))
	end()
	endSession()
	endLogin()
	requireOutput(t, "debian", login.run(t, "cat "+marker))
	login.requireEnded(t)
	require.Zero(t, c.Root("touch", jailHome+"changed").Code)
	assert.Equal(t, "COMPLETED", c.WaitJob(harness.Job{ID: job}).State)
	output := readOutput(c, job)
	assert.Regexp(t, `^begun\ndebian\n(?s:.*)\ndone\n$`, output)
	assert.Equal(t, 1, strings.Count(output, "another version was installed on this node while this job runs"), output)
	require.Zero(t, c.Root("rm", jailHome+"changed").Code)

	job, end = begin(), startEachRoot(t, c)
	endLogin, endSession = login.start(t), upgradedSession{c, job}.start(t)
	change(&contracts[0], toRelease)
	harness.RequireRefused(t, "job "+job+" has no sandbox of yours on this node", upgradedSession{c, job}.run(t, "true")) // the words of 0.1.0
	harness.RequireRefused(t, "of another version of gojail", login.run(t, "true"))
	end()
	endSession()
	endLogin()
	require.Zero(t, c.Root("touch", jailHome+"changed").Code)
	assert.Equal(t, "COMPLETED", c.WaitJob(harness.Job{ID: job}).State)
	assert.Equal(t, "begun\ndebian\ndebian\ndone\n", readOutput(c, job))
	change(&contracts[1], func() { replaceGojail(t, c, func(path string, _ []byte) []byte { return now[path] }) })
	require.Zero(t, c.Gojail("n1", "sweep").Code)
	assert.True(t, c.WaitIdle(), c.Drained())
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(findOldFiles(c)) == 0 }), "%v", findOldFiles(c))
	assert.Equal(t, 0, countHolders(c))
	left, err := filepath.Glob(c.Path("/run/gojail/n1/jobs/*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

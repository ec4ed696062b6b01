// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// textfiles is a directory for the textfile collector.
const textfiles = "/run/node-exporter"

// writeMetrics lets a node replace its file, and returns the text.
func writeMetrics(t *testing.T, c *harness.Cluster, node string) string {
	t.Helper()
	require.Zero(t, c.Root("mkdir", "-p", textfiles).Code)
	r := c.Gojail(node, "metrics", "--output="+textfiles+"/gojail-%n.prom")
	require.Zero(t, r.Code, r)
	require.Empty(t, r.Stderr)
	require.Empty(t, r.Stdout)
	text := c.Root("cat", filepath.Join(textfiles, "gojail-"+node+".prom")).Stdout
	require.Contains(t, text, `gojail_metrics_errors{node="`+node+`"} 0`+"\n")
	return text
}

// TestMetricsOfAJob: a job is in the file of its node while it exists, by the name of its user, and in no other.
func TestMetricsOfAJob(t *testing.T) {
	c := sharedCluster(t)
	script := "touch begun; until [ -e end ]; do sleep 0.1; done; rm begun end\n"
	job := submitScript(t, c, script, "--jail=debian", "-wn1", "--job-name="+"a\"b\nc")
	home := c.Path("/srv/jails/debian/home/alice")
	require.True(t, harness.Poll(harness.Timeout, func() bool { _, err := os.Stat(home + "/begun"); return err == nil }))
	text := writeMetrics(t, c, "n1")
	info := `gojail_job_info{jail="debian",job_id="` + job + `",node="n1",user="alice",version=""} 1` + "\n"
	assert.Contains(t, text, info)
	assert.Contains(t, text, `gojail_job_start_time_seconds{job_id="`+job+`",node="n1"} 1.`)
	assert.Contains(t, text, `gojail_template_current{jail="debian",node="n1"} 1`)
	assert.Contains(t, text, `gojail_sandboxes{jail="debian",node="n1",state="active"} 1`)
	assert.NotContains(t, text, "a\"b", "names of jobs are no labels")
	assert.NotContains(t, writeMetrics(t, c, "n2"), `job_id="`+job+`"`, "two slurmd on a machine have two files")
	assert.Contains(t, writeMetrics(t, c, "n1"), info)

	require.NoError(t, os.WriteFile(home+"/end", nil, 0o644))
	require.True(t, c.WaitIdle())
	text = writeMetrics(t, c, "n1")
	assert.NotContains(t, text, `job_id="`+job+`"`, "gone with the job")
	assert.Contains(t, text, `gojail_sandboxes{jail="debian",node="n1",state="active"} 0`)
}

// TestMetricsAfterAReboot: the file of before is replaced by the first run, although the state directory is empty.
func TestMetricsAfterAReboot(t *testing.T) {
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian"}, Config: strings.Split(harness.DefaultConfig, "[jail.other]")[0]})
	requireOutput(t, "in", c.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=debian", "echo", "in"))
	assert.Contains(t, writeMetrics(t, c, "n1"), "gojail_template_info")
	require.NoError(t, c.StopSlurmd("n1"))
	c.Gojail("n1", "reload")
	require.Zero(t, c.Root("rm", "-rf", "/run/gojail/n1").Code)
	text := writeMetrics(t, c, "n1")
	assert.NotContains(t, text, "gojail_template_info")
	assert.NotContains(t, text, "gojail_job_info")
}

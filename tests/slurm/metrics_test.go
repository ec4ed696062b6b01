// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// textfiles is a directory for the textfile collector.
const textfiles = "/run/node-exporter"

// findSetting returns what is between two texts in a file of the repository.
func findSetting(t *testing.T, file, before, after string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + file)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), before)
	setting, _, ends := strings.Cut(rest, after)
	require.True(t, found && ends, "%s: %s", file, before)
	return setting
}

// TestMetricsBesideDebiansNodeExporter: with what the unit and docs/metrics.md say, where Debian's package has given
// /var/lib/prometheus to an account: the file is written, and node_exporter, which is not root, reads it and its own.
func TestMetricsBesideDebiansNodeExporter(t *testing.T) {
	c := sharedCluster(t)
	output := strings.ReplaceAll(findSetting(t, "packaging/systemd/gojail-metrics.service", "Environment=GOJAIL_METRICS=", "\n"), "%%", "%")
	state := "/var/lib/" + findSetting(t, "packaging/systemd/gojail-metrics.service", "StateDirectory=", "\n")
	argument := findSetting(t, "docs/metrics.md", `ARGS="`, `"`)
	r := c.Root("sh", "-ec", "umask 022; mkdir -p /var/lib/prometheus/node-exporter "+state+"; chown 12345 /var/lib/prometheus; echo apt_upgrades 1 >/var/lib/prometheus/node-exporter/apt.prom")
	require.Zero(t, r.Code, r)
	t.Cleanup(func() { c.Root("rm", "-rf", "/var/lib/prometheus", filepath.Dir(state)) })
	r = c.Gojail("n1", "metrics", output)
	require.Zero(t, r.Code, r)

	const listen = "127.0.0.1:9101"
	ctx, cancel := context.WithCancel(t.Context())
	exporter := c.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{"prometheus-node-exporter", "--web.listen-address=" + listen, "--collector.disable-defaults", "--collector.textfile", argument}})
	require.NoError(t, exporter.Start())
	defer func() { cancel(); exporter.Wait() }()
	var text string
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		text = c.Root("curl", "-s", "http://"+listen+"/metrics").Stdout
		return text != ""
	}))
	assert.Contains(t, text, `gojail_metrics_errors{node="n1"} 0`)
	assert.Contains(t, text, "apt_upgrades 1")
	assert.Contains(t, text, "node_textfile_scrape_error 0")
}

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
	job := submitScript(t, c, script, "--jail=debian", "-wn1", "--job-name=a\"b\nc"+strings.Repeat("é", 500)) // Slurm refuses more than 1,024 bytes
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

// readSeries returns the value of a series, or 0 where there is none.
func readSeries(t *testing.T, text, series string) float64 {
	t.Helper()
	_, rest, found := strings.Cut("\n"+text, "\n"+series+" ")
	if !found {
		return 0
	}
	line, _, _ := strings.Cut(rest, "\n")
	value, err := strconv.ParseFloat(line, 64)
	require.NoError(t, err, "%s %s", series, line)
	return value
}

// TestMetricsOfSteps: steps are counted once on each node, by what became of them.
func TestMetricsOfSteps(t *testing.T) {
	c := sharedCluster(t)
	failed := func(jail, reason string) string {
		return `gojail_steps_failed_total{jail="` + jail + `",node="n1",reason="` + reason + `"}`
	}
	const entered = `gojail_steps_entered_total{jail="debian",node="n1"}`
	watched := []string{entered, failed("", "request"), failed("debian", "sandbox"), failed("debian", "request"), failed("debian", "task"), failed("", "configuration"),
		`gojail_step_entry_duration_seconds_count{jail="debian",node="n1"}`}
	before := writeMetrics(t, c, "n1")
	increases := func(what string, want ...float64) {
		t.Helper()
		after := writeMetrics(t, c, "n1")
		var got []float64
		for _, series := range watched {
			got = append(got, readSeries(t, after, series)-readSeries(t, before, series))
		}
		assert.Equal(t, want, got, what)
		before = after
	}
	srun := func(args ...string) harness.Result {
		return c.Run(harness.Alice, append([]string{"srun", "-Q", "-wn1"}, args...)...)
	}
	requireOutput(t, "one\none", srun("-n2", "--jail=debian", "echo", "one"))
	increases("two tasks of a step", 1, 0, 0, 0, 0, 0, 1)
	assert.Positive(t, readSeries(t, before, `gojail_step_entry_duration_seconds_sum{jail="debian",node="n1"}`))
	requireOutput(t, "in", srun("--jail=none", "echo", "in"))
	increases("no jail", 0, 0, 0, 0, 0, 0, 0)
	assert.NotZero(t, srun("--jail=nosuch", "true").Code)
	increases("an unknown jail", 0, 1, 0, 0, 0, 0, 0)
	assert.NotZero(t, srun("-n2", "--jail=debian", "--jail-mount=/etc:/mnt", "true").Code)
	increases("a mount that is not allowed", 0, 0, 0, 1, 0, 0, 0)
	job := c.Batch(harness.Alice, "#!/bin/sh\nsrun true\nsrun true\n", "-wn1", "--jail=debian", "--chdir=/tmp")
	assert.Equal(t, "COMPLETED", job.State, job)
	increases("a batch script and its steps", 3, 0, 0, 0, 0, 0, 3)
	require.NoError(t, c.WriteConfig("default = [broken"))
	assert.NotZero(t, srun("--jail=debian", "true").Code)
	require.NoError(t, c.WriteConfig(harness.DefaultConfig))
	increases("a mistake in gojail.toml", 0, 0, 0, 0, 0, 1, 0)

	// What is in the place of the counters costs no step.
	counters := "/run/gojail/n1/launches/debian"
	for _, damage := range []string{"echo rubbish >" + counters, "rm " + counters, "rm " + counters + "; mkdir " + counters, "rmdir " + counters + "; ln -s /etc/passwd " + counters} {
		require.Zero(t, c.Root("sh", "-c", damage).Code)
		requireOutput(t, "in", srun("--jail=debian", "echo", "in"))
		assert.LessOrEqual(t, readSeries(t, writeMetrics(t, c, "n1"), entered), 1.0, damage)
	}
	require.Zero(t, c.Root("rm", counters).Code)
	requireOutput(t, "in", srun("--jail=debian", "echo", "in"))
	assert.Equal(t, 1.0, readSeries(t, writeMetrics(t, c, "n1"), entered))
}

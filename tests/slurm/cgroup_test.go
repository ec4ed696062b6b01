// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// runCheck lets the health check of n1 run all checks that the machine leaves on, and returns the verdict and
// the detail of one.
func runCheck(t *testing.T, c *harness.Cluster, name string) (verdict, detail string) {
	t.Helper()
	var report struct {
		Checks []struct{ Check, Verdict, Text, Detail string }
	}
	r := c.Root("gojail-healthcheck", "--node=n1", "--json")
	require.NoError(t, json.Unmarshal([]byte(r.Stdout), &report), r)
	for _, one := range report.Checks {
		if one.Check == name {
			return one.Verdict + ": " + one.Text, one.Detail
		}
	}
	require.Fail(t, "no such check", r)
	return
}

// scopeOf returns the cgroup below which the slurmd of n1 puts jobs, or "" with cgroup v1.
func scopeOf(c *harness.Cluster) string {
	found := strings.Fields(c.Root("sh", "-c", "ls -d /sys/fs/cgroup/system.slice/*n1*slurmstepd.scope /sys/fs/cgroup/system.slice/slurmstepd.scope").Stdout)
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// TestHealthCheckFindsTheCgroupsOfJobs: with the names that this release of Slurm gives them, and with those of before where it has
// the choice. What a job uses is in the metrics with both.
func TestHealthCheckFindsTheCgroupsOfJobs(t *testing.T) {
	if harness.Version() < "26.05" {
		checkJobCgroups(t, "job_%s", "")
		return
	}
	t.Run("SLUID", func(t *testing.T) { checkJobCgroups(t, "s[0-9A-Z]{13}", "") })
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil { // v2
		t.Run("CgroupJobIdPaths", func(t *testing.T) {
			checkJobCgroups(t, "job_%s", "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\nConstrainDevices=yes\nCgroupJobIdPaths=yes\n")
		})
	}
}

// checkJobCgroups lets a job run whose cgroup has that name, with %s for its number. cgroupConf is cgroup.conf, or "" for the usual one.
func checkJobCgroups(t *testing.T, name, cgroupConf string) {
	options := withGPUs("Name=gpu File=/dev/zero\nName=gpu File=/dev/full\n")
	options.Constrain = true
	if cgroupConf != "" {
		options.Files["/etc/slurm/cgroup.conf"] = cgroupConf
	}
	c := harness.Start(t, options)
	config := "run = \"/run/health\"\nstate = \"/var/lib/health\"\nsyslog = false\n"
	replaceFile(t, c.Path("/etc/gojail/health.toml"), config+turnOffChecksBut(c, "cgroup"))

	job := submitScript(t, c, "touch begun; until [ -e end ]; do sleep 0.1; done; rm begun end\n", "--jail=debian", "-wn1")
	home := "/srv/jails/debian/home/alice/"
	require.True(t, harness.Poll(harness.Timeout, func() bool { return c.Root("test", "-e", home+"begun").Code == 0 }))
	scope := scopeOf(c)
	require.True(t, scope != "" || cgroupConf == "", "Slurm has made no cgroups")
	if scope != "" {
		assert.Regexp(t, regexp.MustCompile("(?m)^"+strings.Replace(name, "%s", job, 1)+"$"), c.Root("ls", scope).Stdout)
	}
	for range 3 {
		verdict, detail := runCheck(t, c, "cgroup")
		assert.Equal(t, "ok: Slurm's cgroups are correct", verdict, detail)
	}
	if scope != "" { // with v1 Slurm makes here no cgroup that counts
		metrics := writeMetrics(t, c, "n1")
		for _, name := range []string{"memory_bytes", "memory_peak_bytes", "cpu_seconds_total"} {
			assert.Positive(t, readSeries(t, metrics, "gojail_job_"+name+`{job_id="`+job+`",node="n1"}`), name)
		}
	}
	require.Zero(t, c.Root("touch", home+"end").Code)
	require.True(t, c.WaitIdle(), c.Drained())
	if scope == "" {
		return // Slurm removes what a test would leave in cgroup v1
	}

	// A process in the cgroup of a job that has no slurmstepd.
	for _, name := range []string{"s0123456789ABC", "job_4711"} {
		left := filepath.Join(scope, name, "step_0")
		r := c.Root("sh", "-c", "mkdir -p "+left+" && { setsid sleep 4711 >/dev/null 2>&1 & } && echo $! >"+left+"/cgroup.procs && echo $!")
		require.Zero(t, r.Code, r)
		runCheck(t, c, "cgroup")
		verdict, detail := runCheck(t, c, "cgroup")
		assert.Equal(t, "warn: processes of ended jobs remain", verdict)
		assert.Equal(t, "job "+strings.TrimPrefix(name, "job_"), detail)
		require.Zero(t, c.Root("kill", strings.TrimSpace(r.Stdout)).Code)
		require.True(t, harness.Poll(harness.Timeout, func() bool { return c.Root("rmdir", left, filepath.Dir(left)).Code == 0 }))
	}
}

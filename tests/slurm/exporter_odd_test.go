// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// failingBuffer is a burst buffer whose failure has two lines, which Slurm gives as the reason of a job that waits.
const failingBuffer = `
function ok() return slurm.SUCCESS, "" end
slurm_bb_job_process, slurm_bb_real_size, slurm_bb_paths, slurm_bb_pre_run, slurm_bb_post_run = ok, ok, ok, ok, ok
slurm_bb_data_in, slurm_bb_data_out, slurm_bb_get_status, slurm_bb_job_teardown, slurm_bb_pools = ok, ok, ok, ok, ok
slurm_bb_test_data_in, slurm_bb_test_data_out, slurm_bb_allocate = ok, ok, ok
function slurm_bb_setup() return slurm.ERROR, "no space\nRUNNING|main|n1|N/A|None\n@" end
`

// TestExporterOddRecords: what users and administrators write into nodes and jobs takes no series away and gives no node a reason,
// whatever it is.
func TestExporterOddRecords(t *testing.T) {
	c := harness.Start(t, harness.Options{
		Plugin:    true,
		Files:     map[string]string{"/etc/slurm/burst_buffer.lua": failingBuffer, "/etc/slurm/burst_buffer.conf": "Directive=BB_test\n"},
		SlurmConf: map[string]string{"BurstBufferType": "burst_buffer/lua"},
	})
	formats := []string{"text", "json"}
	if strings.Contains(c.Root("scontrol", "--version").Stdout, " 22.05") {
		formats = formats[:1]
	}
	update := func(args ...string) {
		r := c.Root(append([]string{"scontrol", "update"}, args...)...)
		require.Zero(t, r.Code, r)
	}
	waiting := submitScript(t, c, "#BB_test odd\ntrue\n", "--chdir=/tmp")
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		return strings.Contains(c.Root("squeue", "-h", "-j", waiting, "-o", "%r").Stdout, "no space\nRUNNING")
	}), c.Root("scontrol", "show", "job", waiting))
	running := submitScript(t, c, "exec sleep 1000\n", "-wn1", "--chdir=/tmp", "--output=/dev/null", "--job-name=a\nRUNNING|main|n2|N/A|None", "--comment=b\nc")
	require.True(t, harness.Poll(harness.Timeout, func() bool { return c.JobFields(running)["JobState"] == "RUNNING" }), c.Root("scontrol", "show", "job", running))

	update("NodeName=n2", "State=DRAIN", "Reason=disk Comment=x\n\nNodeName=n1 State=DOWN")
	const drained = `gojail_slurm_node_reason{node="n2",reason="disk Comment=x`
	for _, text := range []string{
		"{\"a\":1,\n\"b\":2}", "kept for Reason=reboot later", "a\n   Reason=reboot [root@2026-01-01T00:00:00]\n   State=DOWN", "a\n\nNodeName=n9 State=DOWN CPUTot=4",
		"a\nNodeName=n2 State=DOWN", "N/A", "=|\"'", "\x01\x1b[31m\xff", strings.Repeat("long ", 20000), "",
	} {
		for _, field := range []string{"Comment", "Extra"} {
			update("NodeName=n1", field+"="+text)
		}
		for _, format := range formats {
			name := fmt.Sprintf("%s %.40q", format, text)
			r := c.Root("gojail-exporter", "--once", "--format="+format)
			require.Zero(t, r.Code, r)
			for _, line := range []string{
				`gojail_slurm_node_state{node="n1",state="mixed"} 1`, `gojail_slurm_node_state{node="n2",state="idle"} 1`, `gojail_slurm_node_flag{flag="drain",node="n2"} 1`,
				`gojail_slurm_node_jobs{node="n1"} 1`, `gojail_slurm_jobs{state="running"} 1`, `gojail_slurm_jobs{state="pending"} 1`,
				`gojail_slurm_partition_jobs_pending{partition="main",reason="burst_buffer_lua"} 1`, `gojail_exporter_odd_records_total{source="jobs"} 0`,
				`gojail_exporter_odd_records_total{source="diag"} 0`, `gojail_slurm_partition_nodes{partition="main",state="mixed"} 1`,
			} {
				assert.True(t, strings.Contains(r.Stdout, "\n"+line+"\n"), "%s: %s is missing", name, line)
			}
			assert.True(t, strings.Contains(r.Stdout, drained), "%s: %s is missing", name, drained)
			assert.False(t, strings.Contains(r.Stdout, `gojail_slurm_node_reason{node="n1"`), name)
			assert.False(t, strings.Contains(r.Stdout, "n9"), name)
			odd := readSeries(t, r.Stdout, `gojail_exporter_odd_records_total{source="nodes"}`)
			assert.Equal(t, format == "text" && strings.Contains(text, "\n\nNodeName="), odd > 0, name)
		}
	}
	// The node keeps what it is for the other readers of the same record.
	update("NodeName=n1", "Comment=a Gres=gpu:9 NodeName=n2\n   State=DOWN\n   Reason=b [root@2026-01-01T00:00:00]")
	r := c.Root("gojail", "node-conf", "--check", "--node=n1")
	assert.NotContains(t, r.Stdout+r.Stderr, "did not show", r)
	assert.NotContains(t, r.Stdout+r.Stderr, "gpu", r)
}

// SPDX-License-Identifier: Apache-2.0

package series

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/exporter/poll"
	"github.com/gojail/gojail/internal/metric/metrictest"
	"github.com/gojail/gojail/internal/slurm"
)

var at = time.Unix(1.7e9, 0)

// newView returns a view with everything in it.
func newView() poll.View {
	source := poll.Source{Runs: 3, Odd: 7, Failures: map[string]int{poll.Timeout: 1}, Took: time.Second, At: at}
	return poll.View{
		Active: true, Up: true, Asked: true,
		Controllers: []slurm.Controller{{Host: "a", Up: true}, {Host: "b"}},
		Nodes: &slurm.Nodes{List: []slurm.Node{
			{Name: "n1", State: "mixed", Partitions: []string{"main", "gpu"}, GPUs: []slurm.GPUs{{Type: "h100", Total: 4, Allocated: 3}}, CPUs: 8, CPUsAllocated: 2, Version: "24.11.5"},
			{Name: "n2", State: "idle", Flags: []string{"drain"}, Reason: "a \"b\"\\", ReasonUser: "root", ReasonTime: at, Partitions: []string{"main"}, CPUs: 8},
		}},
		Jobs: &slurm.Jobs{
			States: map[string]int{"pending": 3, "running": 1}, Partitions: map[slurm.InPartition]int{{Partition: "main", Word: "pending"}: 3},
			Pending: map[slurm.InPartition]int{{Partition: "main", Word: "Priority"}: 3}, Nodes: map[string]int{"n1": 1},
		},
		Diag: &slurm.Diag{
			Values: map[string]float64{"server_thread_count": 2, "schedule_cycle_last": 1500, "bf_exit/bf_max_time": 1, "schedule_exit/end_job_queue": 2},
			Types:  []slurm.RPC{{Name: "REQUEST_PING", Count: 5, Microseconds: 5e6}},
			Users:  []slurm.RPC{{Name: "root", Count: 5, Microseconds: 5e6}, {Name: "alice", Count: 3}, {Name: "bob", Count: 1}},
		},
		Sources: map[string]poll.Source{poll.Ping: source, poll.Nodes: source, poll.Jobs: source, poll.Diag: source},
	}
}

func newGatherer(v *poll.View) *Gatherer {
	return &Gatherer{
		View: func() poll.View { return *v }, Slurm: func() (string, string) { return "24.11.5", "json" }, Users: 1,
		Now: func() time.Time { return at.Add(30 * time.Second) },
	}
}

// render returns the metrics without their comments.
func render(t testing.TB, g *Gatherer) string {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	var text bytes.Buffer
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&text, f)
		require.NoError(t, err)
	}
	var lines strings.Builder
	for line := range strings.Lines(text.String()) {
		if line[0] != '#' {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

func TestSeries(t *testing.T) {
	v := newView()
	text := "\n" + render(t, newGatherer(&v))
	for _, line := range []string{
		`gojail_exporter_active 1`,
		`gojail_exporter_data_age_seconds{source="nodes"} 30`,
		`gojail_exporter_data_stale{source="jobs"} 0`,
		`gojail_exporter_command_failures_total{reason="timeout",source="diag"} 1`,
		`gojail_exporter_slurm_info{format="json",release="24.11.5"} 1`,
		`gojail_slurm_controller_up 1`,
		`gojail_slurm_controller_responding{controller="b"} 0`,
		`gojail_slurm_node_state{node="n1",state="mixed"} 1`,
		`gojail_slurm_node_flag{flag="drain",node="n2"} 1`,
		`gojail_slurm_node_reason{node="n2",reason="a \"b\"\\",user="root"} 1`,
		`gojail_slurm_node_reason_time_seconds{node="n2"} 1.7e+09`,
		`gojail_slurm_node_partition{node="n1",partition="gpu"} 1`,
		`gojail_slurm_node_gpus_allocated{node="n1",type="h100"} 3`,
		`gojail_slurm_node_jobs{node="n1"} 1`,
		`gojail_slurm_node_jobs{node="n2"} 0`,
		`gojail_slurm_nodes{state="down"} 0`,
		`gojail_slurm_nodes_flagged{flag="drain"} 1`,
		`gojail_slurm_gpus{type="h100"} 4`,
		`gojail_slurm_partition_gpus{partition="main",type="h100"} 4`,
		`gojail_slurm_partition_cpus{partition="main"} 16`,
		`gojail_slurm_partition_nodes{partition="main",state="idle"} 1`,
		`gojail_slurm_jobs{state="pending"} 3`,
		`gojail_slurm_jobs{state="failed"} 0`,
		`gojail_slurm_partition_jobs{partition="gpu",state="pending"} 0`,
		`gojail_slurm_partition_jobs_pending{partition="main",reason="Priority"} 3`,
		`gojail_slurm_server_threads 2`,
		`gojail_slurm_scheduler_cycle_last_seconds 0.0015`,
		`gojail_slurm_backfill_exits_total{reason="bf_max_time"} 1`,
		`gojail_slurm_rpc_duration_seconds_total{rpc="REQUEST_PING"} 5`,
		`gojail_slurm_rpc_user_calls_total{user="root"} 5`,
		`gojail_slurm_rpc_user_calls_total{user="other"} 4`,
	} {
		assert.Contains(t, text, "\n"+line+"\n")
	}
}

func TestNamesAreGood(t *testing.T) {
	v := newView()
	for _, d := range diagValues {
		v.Diag.Values[d.key] = 1
	}
	problems, err := testutil.GatherAndLint(newGatherer(&v))
	require.NoError(t, err)
	assert.Empty(t, problems)
}

// TestPageHasEachMetric compares the cluster's part of docs/metrics.md with the metrics, their types and labels.
func TestPageHasEachMetric(t *testing.T) {
	v := newView()
	for _, d := range diagValues {
		v.Diag.Values[d.key] = 1
	}
	families, err := newGatherer(&v).Gather()
	require.NoError(t, err)
	var written, made []string
	for _, m := range metrictest.ReadPage(t) {
		if !m.OfNode {
			written = append(written, fmt.Sprint(m.Name, " ", m.Type, " ", m.Labels))
		}
	}
	for _, f := range families {
		labels := []string{}
		for _, l := range f.Metric[0].Label {
			labels = append(labels, l.GetName())
		}
		made = append(made, fmt.Sprint(f.GetName(), " ", strings.ToLower(f.GetType().String()), " ", labels))
	}
	assert.ElementsMatch(t, written, made)
}

// TestStates: an empty page is never the answer.
func TestStates(t *testing.T) {
	var v poll.View
	g := newGatherer(&v)
	assert.NotContains(t, render(t, g), "gojail_slurm_", "nothing was asked yet")
	assert.Contains(t, render(t, g), "gojail_exporter_build_info")

	v = poll.View{Active: true, Asked: true, Sources: map[string]poll.Source{poll.Nodes: {Runs: 1, Failing: true}}}
	text := render(t, g)
	assert.Contains(t, text, "gojail_slurm_controller_up 0\n")
	assert.Contains(t, text, `gojail_exporter_data_stale{source="nodes"} 1`)
	assert.NotContains(t, text, "data_age")

	v = newView()
	v.Up = false
	text = render(t, g)
	assert.Contains(t, text, `gojail_exporter_data_stale{source="diag"} 1`)
	assert.Contains(t, text, "gojail_slurm_node_state", "data has an age, and is shown")
	v.Nodes, v.Jobs, v.Diag = nil, nil, nil
	text = render(t, g)
	assert.NotContains(t, text, "gojail_slurm_node")
	assert.Contains(t, text, "gojail_exporter_data_age_seconds")

	v = newView()
	v.Active, v.Nodes, v.Jobs, v.Diag = false, nil, nil, nil
	text = render(t, g)
	assert.NotContains(t, text, "gojail_slurm_", "the standby is quiet")
	assert.NotContains(t, text, "data_stale")
	assert.Contains(t, text, "gojail_exporter_active 0\n")
}

// TestNoNodes: a cluster whose nodes are all deleted has no node, which is no old answer.
func TestNoNodes(t *testing.T) {
	v := newView()
	v.Nodes, v.Jobs.Nodes = &slurm.Nodes{}, nil
	text := render(t, newGatherer(&v))
	assert.Contains(t, text, `gojail_exporter_data_stale{source="nodes"} 0`)
	assert.Contains(t, text, `gojail_slurm_nodes{state="idle"} 0`)
	assert.NotContains(t, text, "gojail_slurm_node_")
}

// TestOncePerInterval: two who scrape get the same metrics, which are made once; new data makes new ones.
func TestOncePerInterval(t *testing.T) {
	v := newView()
	g := newGatherer(&v)
	render(t, g)
	first := g.data
	render(t, g)
	assert.Same(t, first[0], g.data[0])
	source := v.Sources[poll.Jobs]
	source.At = at.Add(time.Minute)
	v.Sources[poll.Jobs] = source
	render(t, g)
	assert.NotSame(t, first[0], g.data[0])
	v.Diag = nil
	assert.NotContains(t, render(t, g), "gojail_slurm_server_threads")
}

// TestLimits: whatever Slurm says, there is a page, and its series are limited.
func TestLimits(t *testing.T) {
	v := newView()
	v.Nodes = &slurm.Nodes{}
	for i := range 600 {
		name := fmt.Sprint("x", i)
		v.Nodes.List = append(v.Nodes.List, slurm.Node{Name: fmt.Sprint("n", i%500), State: "idle", Flags: []string{name, name, "y" + name, slurm.Other}, Version: name,
			Partitions: []string{name, "y" + name, slurm.Other}, GPUs: []slurm.GPUs{{Type: name, Total: 1}, {Type: "y" + name, Total: 1}}})
	}
	v.Diag.Users = append(v.Diag.Users, slurm.RPC{Name: slurm.Other, Count: 2})
	text := render(t, newGatherer(&v))
	for name, most := range map[string]int{
		"nodes_flagged{": flagsMost + 1, "nodes_slurmd{": versionsMost + 1, "gpus{": typesMost + 1, "partition_cpus{": partitionsMost + 1,
		"node_state{": 500, "node_flag{": 3 * 500, "partition_jobs{": 2*partitionsMost + 2,
	} {
		assert.LessOrEqual(t, strings.Count(text, "\ngojail_slurm_"+name), most, name)
		assert.NotZero(t, strings.Count(text, "\ngojail_slurm_"+name), name)
	}
}

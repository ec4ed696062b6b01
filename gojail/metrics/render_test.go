// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/metric/metrictest"
	"github.com/gojail/gojail/internal/quota"
)

// everything is a node with at least one series of each metric.
func everything() *Facts {
	begun := time.Unix(1700000000, 0)
	return &Facts{
		node: "n1", version: "0.1.0", time: begun.Add(time.Hour), endsFailed: 2,
		jobs: []job{
			{id: "17", user: "alice", start: begun, jails: []jail{{"debian", "20260101-000000-abcdef01"}, {"other", ""}},
				usage: usage{memory: new(1024.0), memoryPeak: new(2048.0), cpuSeconds: new(1.5)}, scratch: quota.Usage{Used: 4096, Limit: 8192}, scratchKnown: true,
				gpus: []gpu{{jail: "debian", index: "3", uuid: "GPU-1", device: "nvidia3", pci: "00000000:1B:00.0"}, {jail: "debian", index: "0", uuid: "GPU-2", instance: "9", device: "nvidia0", pci: "00000000:9B:00.0"}}},
			{id: "run-4", user: "0", jails: []jail{{"debian", ""}}},
			{id: "18", user: "bob", jails: []jail{{"debian", ""}}, scratchKnown: true},
		},
		templates: []template{{jail: "debian", key: "0123456789abcdef", version: "20260101-000000-abcdef01", start: begun, current: true, judged: true}, {jail: "other", key: "0123456789abcdef", start: begun}},
		sandboxes: map[sandboxKind]int{{"debian", sandboxActive}: 2, {"debian", sandboxGone}: 1, {"other", sandboxActive}: 1},
		VFs: []VF{{Job: "17", Rail: "rail0", PCI: "0000:86:00.2", Netdev: "net1", RDMA: "mlx5_3", PF: "ens1", Number: "1",
			Interface: map[string]uint64{"rx_bytes": 1, "tx_bytes": 2, "rx_packets": 3, "tx_packets": 4, "rx_dropped": 5, "tx_dropped": 6, "rx_errors": 7, "tx_errors": 8},
			Ports:     map[string]map[string]uint64{"1": {"port_rcv_data": 40, "port_xmit_data": 80, "port_rcv_packets": 30, "port_xmit_packets": 40, "port_xmit_wait": 50}}},
			{Job: "99", Rail: "rail0", PCI: "0000:86:00.4", Netdev: "net1"}},
		HeldVFs: []HeldVF{{"0000:86:00.2", "rail0", false}, {"0000:86:00.3", "rail0", true}, {"0000:86:00.4", "rail0", false}},
		launches: map[string]state.Launches{
			"debian": {Entered: 7, Failed: [6]uint64{1, 2, 3, 4, 5, 6}, Took: [10]uint64{1, 2, 0, 0, 0, 0, 0, 0, 0, 4}, TookUs: 40_000_500},
			"":       {Failed: [6]uint64{0, 9}},
		},
		Problems: []error{errors.New("something")},
	}
}

// render returns the text of the facts, and what Prometheus reads of it.
func render(t *testing.T, f *Facts) (string, map[string]*dto.MetricFamily) {
	t.Helper()
	text, err := Render(f)
	require.NoError(t, err)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	require.NoError(t, err, "%s", text)
	return string(text), families
}

func TestRender(t *testing.T) {
	text, families := render(t, everything())
	for _, line := range []string{
		`gojail_build_info{node="n1",version="0.1.0"} 1`,
		`gojail_metrics_time_seconds{node="n1"} 1.7000036e+09`,
		`gojail_metrics_errors{node="n1"} 1`,
		`gojail_job_info{jail="debian",job_id="17",node="n1",user="alice",version="20260101-000000-abcdef01"} 1`,
		`gojail_job_info{jail="other",job_id="17",node="n1",user="alice",version=""} 1`,
		`gojail_job_start_time_seconds{job_id="17",node="n1"} 1.7e+09`,
		`gojail_job_memory_bytes{job_id="17",node="n1"} 1024`,
		`gojail_job_memory_peak_bytes{job_id="17",node="n1"} 2048`,
		`gojail_job_cpu_seconds_total{job_id="17",node="n1"} 1.5`,
		`gojail_job_scratch_bytes{job_id="17",node="n1"} 4096`,
		`gojail_job_scratch_limit_bytes{job_id="17",node="n1"} 8192`,
		`gojail_job_scratch_bytes{job_id="18",node="n1"} 0`,
		`gojail_job_gpu{GPU_I_ID="",UUID="GPU-1",device="nvidia3",gpu="3",jail="debian",job_id="17",node="n1",pci_bus_id="00000000:1B:00.0",user="alice"} 1`,
		`gojail_job_gpu{GPU_I_ID="9",UUID="GPU-2",device="nvidia0",gpu="0",jail="debian",job_id="17",node="n1",pci_bus_id="00000000:9B:00.0",user="alice"} 1`,
		`gojail_job_vf{job_id="17",netdev="net1",node="n1",pci="0000:86:00.2",pf="ens1",rail="rail0",rdma="mlx5_3",user="alice",vf="1"} 1`,
		`gojail_job_network_receive_bytes_total{job_id="17",node="n1",rail="rail0"} 1`,
		`gojail_job_rdma_port_data_received_bytes_total{device="mlx5_3",job_id="17",node="n1",port="1",rail="rail0"} 40`,
		`gojail_job_rdma_port_transmit_wait_total{device="mlx5_3",job_id="17",node="n1",port="1",rail="rail0"} 50`,
		`gojail_vfs{node="n1",rail="rail0",state="in_use"} 2`,
		`gojail_steps_entered_total{jail="debian",node="n1"} 7`,
		`gojail_steps_failed_total{jail="debian",node="n1",reason="storage"} 3`,
		`gojail_steps_failed_total{jail="",node="n1",reason="request"} 9`,
		`gojail_steps_failed_total{jail="",node="n1",reason="task"} 0`,
		`gojail_step_entry_duration_seconds_bucket{jail="debian",node="n1",le="0.0002"} 1`,
		`gojail_step_entry_duration_seconds_bucket{jail="debian",node="n1",le="5"} 3`,
		`gojail_step_entry_duration_seconds_bucket{jail="debian",node="n1",le="+Inf"} 7`,
		`gojail_step_entry_duration_seconds_sum{jail="debian",node="n1"} 40.0005`,
		`gojail_vfs{node="n1",rail="rail0",state="quarantined"} 1`,
		`gojail_vf_quarantined{node="n1",pci="0000:86:00.3",rail="rail0"} 1`,
		`gojail_template_current{jail="debian",node="n1"} 1`,
		`gojail_sandboxes{jail="debian",node="n1",state="gone"} 1`,
		`gojail_job_ends_failed{node="n1"} 2`,
	} {
		assert.Contains(t, text, line+"\n")
	}
	assert.NotContains(t, text, `gojail_job_start_time_seconds{job_id="run-4"`, "it is unknown")
	assert.NotContains(t, text, `gojail_job_memory_bytes{job_id="18"`, "it is unknown")
	assert.NotContains(t, text, `gojail_job_scratch_bytes{job_id="run-4"`, "it is unknown")
	assert.NotContains(t, text, `gojail_job_scratch_limit_bytes{job_id="18"`, "no limit is not a limit of 0")
	assert.NotContains(t, text, `gojail_template_current{jail="other"`, "it is unknown")
	assert.NotContains(t, text, `_bytes_total{job_id="99"`, "a counter that is unknown is not 0")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
	for name, f := range families {
		for _, m := range f.Metric {
			assert.True(t, slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName() == "node" && l.GetValue() == "n1" }), name)
		}
	}
}

// TestPageHasEachMetric compares the nodes' part of docs/metrics.md with the metrics, their types and labels.
func TestPageHasEachMetric(t *testing.T) {
	var written, made []string
	for _, m := range metrictest.ReadPage(t) {
		if m.OfNode {
			written = append(written, fmt.Sprint(m.Name, " ", m.Type, " ", m.Labels))
		}
	}
	_, families := render(t, everything())
	for name, f := range families {
		var labels []string
		for _, l := range f.Metric[0].Label {
			if l.GetName() != "node" {
				labels = append(labels, l.GetName())
			}
		}
		slices.Sort(labels)
		made = append(made, fmt.Sprint(name, " ", strings.ToLower(f.GetType().String()), " ", labels))
	}
	slices.Sort(written)
	slices.Sort(made)
	assert.Equal(t, written, made)
}

// TestHostileNames: what a user could have chosen, or a name service returns, breaks no line.
func TestHostileNames(t *testing.T) {
	for _, user := range []string{`a"b`, "a\nb", `a\`, "a\xff\xfeb", "", strings.Repeat("x", 4096), "gojail_job_info{} 1\n"} {
		f := everything()
		f.jobs[0].user = user
		text, families := render(t, f)
		assert.True(t, slices.ContainsFunc(families["gojail_job_info"].Metric, func(m *dto.Metric) bool {
			return slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool {
				return l.GetName() == "user" && l.GetValue() == strings.ToValidUTF8(user, "?")
			})
		}), "%q", user)
		assert.Equal(t, strings.Count(everyLine(t), "\n"), strings.Count(text, "\n"), "%q", user)
	}
}

func everyLine(t *testing.T) string {
	text, _ := render(t, everything())
	return text
}

// TestManyJobs: the number of series grows with the jobs of the node only.
func TestManyJobs(t *testing.T) {
	f := everything()
	before := strings.Count(everyLine(t), "\n")
	for i := range 500 {
		f.jobs = append(f.jobs, job{id: fmt.Sprint(1000 + i), user: "bob", start: time.Unix(1, 0), jails: []jail{{"debian", ""}}})
	}
	text, _ := render(t, f)
	assert.Equal(t, before+2*500, strings.Count(text, "\n"))
}

// TestPageHasTheNumbersOfSeries: docs/metrics.md says how many series a node has.
func TestPageHasTheNumbersOfSeries(t *testing.T) {
	// As readLaunches has it from the first file on: steps without a jail, and each jail of gojail.toml.
	f := &Facts{node: "n1", sandboxes: map[sandboxKind]int{}, launches: map[string]state.Launches{"": {}}}
	before := 0
	add := func(change func()) (more int) {
		t.Helper()
		change()
		text, _ := render(t, f)
		all := len(regexp.MustCompile(`(?m)^[^#\n]`).FindAllString(text, -1))
		more, before = all-before, all
		return more
	}
	empty := add(func() {})
	steps := add(func() { f.launches["debian"] = state.Launches{} })
	template := add(func() {
		f.templates = append(f.templates, template{jail: "debian", judged: true})
		f.sandboxes[sandboxKind{"debian", sandboxActive}] = 0
	})
	job := add(func() { f.jobs = append(f.jobs, job{id: "17", start: time.Unix(1, 0), jails: []jail{{"debian", ""}}}) })
	cgroups := add(func() { f.jobs[0].usage = everything().jobs[0].usage })
	scratch := add(func() { f.jobs[0].scratch, f.jobs[0].scratchKnown = quota.Usage{Used: 1, Limit: 2}, true })
	gpu := add(func() { f.jobs[0].gpus = everything().jobs[0].gpus[:1] })
	vf := add(func() { f.VFs = everything().VFs[:1] })
	rail := add(func() { f.HeldVFs = everything().HeldVFs[:1] })
	page, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	assert.Contains(t, strings.Join(strings.Fields(string(page)), " "), fmt.Sprintf("A node has %d series, %d for each jail of gojail.toml, and %d for each that is assembled; "+
		"a job adds %d, %d with cgroups, %d where its scratch use is known, 1 for each of its GPUs, and %d for each of its VFs. Each rail of the node that has VFs in use or in quarantine has %d.",
		empty, steps, template, job, cgroups, scratch, vf, rail))
	assert.Equal(t, 1, gpu)
	text, _ := render(t, &Facts{node: "n1"})
	assert.Contains(t, string(page), fmt.Sprintf("steps are not counted: the node has %d then", len(regexp.MustCompile(`(?m)^[^#\n]`).FindAllString(text, -1))))
}

// TestTwoOfTheSame: one bad series fails all, so that the old file is noticed, and none is written in part.
func TestTwoOfTheSame(t *testing.T) {
	f := everything()
	f.jobs = append(f.jobs, f.jobs[0])
	_, err := Render(f)
	assert.ErrorContains(t, err, "cannot make the metrics")
}

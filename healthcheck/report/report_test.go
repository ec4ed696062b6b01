// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/drain"
	"github.com/gojail/gojail/healthcheck/run"
	"github.com/gojail/gojail/internal/nstest"
)

func result(name string, severity check.Severity, f check.Finding) run.Result {
	return run.Result{Check: check.Check{Name: name, Severity: severity, BadRuns: 3, GoodRuns: 2}, Finding: f, Took: time.Millisecond}
}

func report(results ...run.Result) *Report {
	r := &Report{Node: "n1", Began: time.Unix(1000, 0).UTC(), Took: time.Second, Results: results, History: &drain.History{}}
	r.History.AddResults(results)
	return r
}

var (
	fine    = result("fine", check.Drain, check.NewFinding(check.OK, "all is well"))
	warm    = result("warm", check.Drain, check.NewFinding(check.Warn, "it is warm"))
	small   = result("small", check.WarnOnly, check.NewFinding(check.Fail, "it is small"))
	broken  = result("broken", check.Drain, check.Finding{Verdict: check.Fail, Text: "it is broken", Detail: "17 times"})
	dark    = result("dark", check.Drain, check.NewFinding(check.Unknown, "it is dark"))
	without = result("without", check.Drain, check.NewFinding(check.NotApplicable, "there is none"))
)

func TestExitCodesAndSummariesForNagios(t *testing.T) {
	for _, test := range []struct {
		results []run.Result
		exit    int
		summary string
	}{
		{nil, 0, "OK: 0 of 0 checks are good"},
		{[]run.Result{fine, without}, 0, "OK: 1 of 1 checks are good (1 does not apply)"},
		{[]run.Result{fine, warm}, 1, "WARNING: 1 of 2 checks warns: warm"},
		{[]run.Result{dark, small, warm}, 1, "WARNING: 2 of 3 checks warn: small, warm"},
		{[]run.Result{fine, dark}, 3, "UNKNOWN: 1 of 2 checks cannot tell: dark"},
		{[]run.Result{dark, warm, broken, without, broken, without}, 2, "CRITICAL: 2 of 4 checks fail: broken, broken (2 do not apply)"},
	} {
		r := report(test.results...)
		assert.Equal(t, test.exit, r.ExitCode(), test.summary)
		assert.Equal(t, test.summary, r.formatSummary())
	}
	r := report(fine)
	r.Outcome.Err = errors.New("no answer")
	assert.Equal(t, 3, r.ExitCode())
	assert.Equal(t, "UNKNOWN: 1 of 1 checks are good, but the run is incomplete", r.formatSummary())
}

func TestText(t *testing.T) {
	r := report(fine, broken, dark)
	r.Outcome = drain.Outcome{Decision: drain.Decision{Action: drain.Drain, Why: "[node_problem] x"}}
	var out bytes.Buffer
	require.NoError(t, r.WriteText(&out))
	assert.Equal(t, `CRITICAL: 1 of 3 checks fails: broken
fine    ok       all is well
broken  fail     it is broken (17 times) [1 of 3 runs]
dark    unknown  it is dark
Slurm: drained: [node_problem] x
`, out.String())

	out.Reset()
	require.NoError(t, r.WriteBrief(&out))
	assert.Equal(t, `CRITICAL: 1 of 3 checks fails: broken
broken: fail: it is broken
dark: unknown: it is dark
Slurm: drained: [node_problem] x
`, out.String())

	r.Dry = true
	assert.Equal(t, []string{"Slurm: would be drained: [node_problem] x"}, r.listSlurmLines())
	r.Outcome = drain.Outcome{Err: errors.New("no answer")}
	assert.Equal(t, []string{"error: no answer"}, r.listSlurmLines())
	r.Outcome = drain.Outcome{Decision: drain.Decision{Why: "it is already drained: x"}}
	assert.Equal(t, []string{"Slurm: left alone, it is already drained: x"}, r.listSlurmLines())
}

func TestWhatStillCountsIsSaid(t *testing.T) {
	r := report(broken)
	r.History.AddResults([]run.Result{broken})
	r.History.AddResults([]run.Result{broken})
	good := result("broken", check.Drain, check.NewFinding(check.OK, "it works"))
	r.Results = []run.Result{good}
	r.History.AddResults(r.Results)
	var out bytes.Buffer
	require.NoError(t, r.WriteText(&out))
	assert.Contains(t, out.String(), "it works [counts as bad until 2 good runs, 1 so far]")
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, report(fine, broken).WriteJSON(&out))
	var got map[string]any
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	assert.Equal(t, "none", got["slurm_action"])
	assert.Equal(t, map[string]any{"check": "broken", "severity": "drain", "seconds": 0.001, "counts": false,
		"verdict": "fail", "text": "it is broken", "detail": "17 times"}, got["checks"].([]any)[1])
}

// ours returns a directory that only root can write.
func ours(t *testing.T) string {
	if !nstest.IsRoot() {
		t.Skip("needs root: the directory of metrics must be root's")
	}
	dir, err := os.MkdirTemp("/root", "gojail-test-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// A file that others put in place of the metrics file is not opened.
func TestMetricsInADirectoryOfOthers(t *testing.T) {
	dir := ours(t)
	path := dir + "/n1.prom"
	require.NoError(t, report(fine).WriteMetrics(path, nil))
	assert.FileExists(t, path)

	require.NoError(t, unix.Mkfifo(path+".new", 0o600))
	assert.ErrorContains(t, report(fine).WriteMetrics(path, nil), "n1.prom.new: no such device or address")

	require.NoError(t, os.Chown(dir, 65534, 0))
	assert.EqualError(t, report(fine).WriteMetrics(path, nil),
		"cannot write the metrics "+path+": "+dir+": belongs to uid 65534 and not to root; run: chown root:root "+dir)
}

// The process does not wait for a hung disk.
func TestMetricsOnADiskThatHangs(t *testing.T) {
	never := func(ctx context.Context, path string, _ []byte) error {
		<-ctx.Done()
		return fmt.Errorf("%s: it took too long", filepath.Base(path))
	}
	assert.EqualError(t, report(fine).WriteMetrics("/srv/n1.prom", never), "cannot write the metrics /srv/n1.prom: n1.prom: it took too long")
}

func TestMetrics(t *testing.T) {
	path := filepath.Join(ours(t), "health.prom")
	withNumbers := fine
	withNumbers.Metrics = []check.Metric{
		{Name: "gpu_errors", Help: "Errors.", Labels: map[string]string{"gpu": "0"}, Value: 1},
		{Name: "gpu_errors", Help: "Errors.", Labels: map[string]string{"gpu": "1"}, Value: 2},
	}
	require.NoError(t, report(withNumbers, broken).WriteMetrics(path, nil))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, line := range []string{
		`gojail_health_check_status{check="broken",node="n1",severity="drain"} 3`, `gojail_health_check_status{check="fine",node="n1",severity="drain"} 1`,
		`gojail_health_gpu_errors{gpu="1",node="n1"} 2`, "# HELP gojail_health_gpu_errors Errors.", `gojail_health_last_run_timestamp_seconds{node="n1"} 1000`,
		`gojail_health_drained{node="n1"} 0`,
	} {
		assert.Contains(t, string(text), line+"\n")
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 1)
	withNumbers.Metrics[0].Labels = map[string]string{"gpu": "a\"b\\c\nd\xff"}
	withNumbers.Metrics[0].Help = "Errors\nof \\."
	require.NoError(t, report(withNumbers).WriteMetrics(path, nil))
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	found, err := promlint.New(file).Lint() // reads it as Prometheus does
	require.NoError(t, err)
	for _, p := range found { // a gauge that ends with _total is meant
		assert.Contains(t, p.Text, "_total", p.Metric)
	}

	// A check with contradictory metrics does not affect the others.
	withNumbers.Metrics[1].Labels = map[string]string{"card": "1"}
	assert.ErrorContains(t, report(withNumbers).WriteMetrics(path, nil), "metric gpu_errors: labels differ from the first metric of this name")
	assert.ErrorContains(t, report(withNumbers, withNumbers).WriteMetrics(path, nil), "metric gpu_errors: duplicate labels")
	assert.NoError(t, (&family{rows: map[string]bool{}}).addMetric(check.Metric{Name: "a_1"}))
	for _, name := range []string{"", "1a", "a-b", "a b", "A"} {
		assert.Error(t, (&family{rows: map[string]bool{}}).addMetric(check.Metric{Name: name}), name)
	}
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(text), "gojail_health_gpu_errors{gpu=\"a")

	assert.ErrorContains(t, report(fine).WriteMetrics("/nowhere/health.prom", nil), "cannot write the metrics /nowhere/health.prom")
}

func TestSyslog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(t, err)
	defer log.Close()
	r := report()
	require.NoError(t, r.WriteSyslog(path, nil))
	require.NoError(t, r.WriteSyslog(path, []drain.Change{{Check: "broken", Verdict: check.Fail, Text: "it is broken"}}))
	line := make([]byte, 1000)
	n, err := log.Read(line)
	require.NoError(t, err)
	assert.Equal(t, "<27>gojail-healthcheck[PID]: broken: fail: it is broken", regexp.MustCompile(`\[\d+\]`).ReplaceAllString(string(line[:n]), "[PID]"))

	// The socket of a log that is not read is full at some point; the run must not wait for it.
	many := make([]drain.Change, 100000)
	for i := range many {
		many[i].Text = strings.Repeat("x", 1000)
	}
	assert.ErrorContains(t, r.WriteSyslog(path, many), "cannot write to syslog")
}

// TestTextIsPrintable: a detail can include the name of a user's process.
func TestTextIsPrintable(t *testing.T) {
	r := &Report{Node: "n1", History: &drain.History{}, Results: []run.Result{
		result("a", check.WarnOnly, check.Finding{Verdict: check.Warn, Text: "stuck", Detail: "Ü\u009b2J\x1b[2J\u202e"})}}
	var text strings.Builder
	require.NoError(t, r.WriteText(&text))
	assert.Contains(t, text.String(), "(Ü?2J?[2J?)")
}

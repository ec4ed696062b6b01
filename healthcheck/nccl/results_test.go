// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
)

// TestResultsOfRounds: the last conclusive result of each node and pair is known until it is a week old.
func TestResultsOfRounds(t *testing.T) {
	nstest.NeedRoot(t)
	now := time.Unix(1700000000, 0).UTC()
	r := &Runner{Store: Store{State: t.TempDir()}, Now: func() time.Time { return now }}
	test := func(verdict Verdict, busbw float64, nodes ...string) *Test {
		return &Test{Nodes: nodes, Ended: now, Judged: Judged{Verdict: verdict, BusBW: busbw, Expected: 400}}
	}
	first := &testRound{Tests: []*Test{test(verdictGood, 390, "n1"), test(verdictBad, 100, "n2"), test(verdictGood, 300, "n2", "n1"), test(verdictNothing, 0, "n3")}}
	results, err := r.updateResults(first)
	require.NoError(t, err)
	assert.Len(t, results, 3)
	now = now.Add(time.Hour)
	results, err = r.updateResults(&testRound{Tests: []*Test{test(verdictSlow, 350, "n1"), test(verdictNothing, 0, "n2")}})
	require.NoError(t, err)

	values := map[string]float64{}
	for _, m := range listMetrics(results, &Report{Exit: 2}, now) {
		values[m.Name+" "+m.Labels["node"]+" "+m.Labels["partner"]] = m.Value
	}
	assert.Equal(t, map[string]float64{
		"nccl_round_timestamp_seconds  ": 1700003600, "nccl_round_status  ": 2,
		"nccl_busbw_bytes_per_second n1 ": 350e9, "nccl_busbw_expected_bytes_per_second n1 ": 400e9, "nccl_test_passed n1 ": 1, "nccl_test_timestamp_seconds n1 ": 1700003600,
		"nccl_busbw_bytes_per_second n2 ": 100e9, "nccl_busbw_expected_bytes_per_second n2 ": 400e9, "nccl_test_passed n2 ": 0, "nccl_test_timestamp_seconds n2 ": 1700000000,
		"nccl_busbw_bytes_per_second n1 n2": 300e9, "nccl_busbw_expected_bytes_per_second n1 n2": 400e9, "nccl_test_passed n1 n2": 1, "nccl_test_timestamp_seconds n1 n2": 1700000000,
	}, values)

	require.NoError(t, os.WriteFile(r.Store.resultsPath(), []byte("{"), 0o600))
	results, err = r.updateResults(first)
	require.NoError(t, err)
	assert.Len(t, results, 3, "a damaged file is replaced")
	now = now.Add(resultAge + time.Minute)
	results, err = r.updateResults(&testRound{})
	require.NoError(t, err)
	assert.Empty(t, results)
}

// TestPanelsNameTheMetrics: a panel, and the stand-in with which tests/prometheus asks for it, name metrics that a round writes.
func TestPanelsNameTheMetrics(t *testing.T) {
	written := map[string]bool{}
	results := map[string]result{"n1": {Nodes: []string{"n1"}, Judged: Judged{Expected: 400}}}
	for _, m := range listMetrics(results, &Report{}, time.Unix(1, 0)) {
		written["gojail_health_"+m.Name] = true
	}
	for _, file := range []string{"../../packaging/grafana/health.go", "../../tests/prometheus/foreign_test.go"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		named := regexp.MustCompile(`gojail_health_nccl_[a-z_]+`).FindAllString(string(text), -1)
		assert.Greater(t, len(named), 4, file)
		for _, name := range named {
			assert.True(t, written[name], "%s names %s, which no round writes", file, name)
		}
	}
}

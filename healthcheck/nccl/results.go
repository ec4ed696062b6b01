// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/statefile"
)

// resultAge is how long the result of a node, or of a pair, is told of: pairs are drawn by chance, and a cluster has
// many.
const resultAge = 7 * 24 * time.Hour

// result is the last conclusive result of some nodes.
type result struct {
	Nodes  []string  `json:"nodes"`
	Time   time.Time `json:"time"`
	Judged `json:"judged"`
}

func (s Store) resultsPath() string { return filepath.Join(s.State, "results.json") }

// updateResults adds the conclusive results of a round to those of earlier ones, in the place of older ones of the same
// nodes, and returns all.
func (r *Runner) updateResults(round *testRound) (map[string]result, error) {
	all := map[string]result{}
	if err := statefile.Read(r.Store.resultsPath(), &all, nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
		all = map[string]result{} // a damaged file is replaced
	}
	for _, t := range round.Tests {
		if round.isEvidence(t) {
			nodes := slices.Sorted(slices.Values(t.Nodes))
			all[strings.Join(nodes, ",")] = result{nodes, t.Ended, t.Judged}
		}
	}
	now := r.Now()
	maps.DeleteFunc(all, func(_ string, one result) bool {
		return len(one.Nodes) == 0 || now.Sub(one.Time) > resultAge
	})
	return all, writeState(r.Store.resultsPath(), all)
}

// listMetrics returns the metrics of the results, and of a round. The label partner is empty if a node was tested
// alone.
func listMetrics(results map[string]result, round *Report, ended time.Time) []check.Metric {
	all := []check.Metric{
		{Name: "nccl_round_timestamp_seconds", Help: "When the last round of tests with NCCL ended.",
			Value: seconds(ended)},
		{Name: "nccl_round_status",
			Help:  "Its result: 0 all nodes pass, 1 a warning, 2 a bad node, 3 an unknown result.",
			Value: float64(round.Exit)},
	}
	for _, key := range slices.Sorted(maps.Keys(results)) {
		one := results[key]
		labels := map[string]string{"node": one.Nodes[0], "partner": strings.Join(one.Nodes[1:], ",")}
		add := func(name, help string, value float64) {
			all = append(all, check.Metric{Name: "nccl_" + name, Help: help, Value: value, Labels: labels})
		}
		passed := 0.0
		if one.hasPassed() {
			passed = 1
		}
		add("test_passed", "1 if the node, or the pair, reached enough of the expected bandwidth in its last test.",
			passed)
		add("test_timestamp_seconds", "When that ended.", seconds(one.Time))
		if one.Expected > 0 { // output with wrong data may have no figure
			add("busbw_bytes_per_second", "Its busbw in that test, for the size that is judged.", one.BusBW*1e9)
			add("busbw_expected_bytes_per_second", "The busbw of a healthy one, as health.toml has it.",
				one.Expected*1e9)
		}
	}
	return all
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

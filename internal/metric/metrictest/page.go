// SPDX-License-Identifier: Apache-2.0

// Package metrictest reads docs/metrics.md, which tests compare with the metrics that gojail makes and that dashboards
// show.
package metrictest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Metric is a metric as the page describes it.
type Metric struct {
	Name   string
	Type   string   // gauge, counter or histogram
	Labels []string // sorted; without the label that each metric of a node has
	OfNode bool     // not of gojail-exporter
}

var quoted = regexp.MustCompile("`([^`]+)`")

// ReadPage returns the metrics in the tables of docs/metrics.md, in their order there.
func ReadPage(t testing.TB) (all []Metric) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(findRepository(t), "docs/metrics.md"))
	require.NoError(t, err)
	ofNode := true
	for line := range strings.Lines(string(text)) {
		ofNode = ofNode && line != "## Metrics of the cluster\n"
		cells := strings.Split(line, "|") // one before the first bar, one after the last
		if len(cells) != 6 || !strings.HasPrefix(line, "| `gojail_") {
			continue
		}
		kind, _, _ := strings.Cut(strings.TrimSpace(cells[2]), ",")
		for _, name := range findQuoted(cells[1]) {
			labels := findQuoted(cells[3])
			slices.Sort(labels)
			all = append(all, Metric{name, kind, labels, ofNode})
		}
	}
	require.False(t, ofNode, "docs/metrics.md has no section about metrics of the cluster")
	require.Greater(t, len(all), 50, "docs/metrics.md has lost its tables")
	return all
}

func findQuoted(cell string) (words []string) {
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		words = append(words, m[1])
	}
	return words
}

// findRepository returns the directory with go.mod, in which tests run somewhere.
func findRepository(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	require.Fail(t, "this test does not run in the repository")
	return ""
}

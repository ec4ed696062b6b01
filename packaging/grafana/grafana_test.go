// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/metric/metrictest"
)

// written is a dashboard as Grafana reads it.
type written struct {
	UID, Title    string
	SchemaVersion int
	Panels        []struct {
		ID          int
		Type, Title string
		GridPos     struct{ H, W, X, Y int }
		Targets     []struct{ Expr, RefID string }
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

// readAll returns the dashboards that the program writes.
func readAll(t *testing.T) (all []written) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, writeAll(dir))
	for _, d := range dashboards {
		text, err := os.ReadFile(filepath.Join(dir, d.name+".json"))
		require.NoError(t, err)
		var w written
		require.NoError(t, json.Unmarshal(text, &w))
		all = append(all, w)
	}
	return all
}

// TestDashboardsAreWhole: each panel is there once, has a query, and lies over no other.
func TestDashboardsAreWhole(t *testing.T) {
	for _, d := range readAll(t) {
		assert.True(t, strings.HasPrefix(d.UID, "gojail-"), d.UID)
		titles := map[string]bool{}
		for i, p := range d.Panels {
			assert.NotEmpty(t, p.Title)
			assert.Equal(t, i+1, p.ID, p.Title)
			assert.False(t, p.Type != "row" && titles[p.Title], "%s: %s is there twice", d.UID, p.Title)
			titles[p.Title] = titles[p.Title] || p.Type != "row"
			assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
			assert.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
			for _, other := range d.Panels[:i] {
				a, b := p.GridPos, other.GridPos
				over := a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H
				assert.False(t, over, "%s lies over %s", p.Title, other.Title)
			}
		}
	}
}

var variableOfGrafana = regexp.MustCompile(`\$\{?([a-z_]+)`)

// TestVariablesExist: each variable that a query uses is one of the dashboard's, and each of these is used.
func TestVariablesExist(t *testing.T) {
	for _, d := range readAll(t) {
		used := []string{"datasource"}
		add := func(text string) {
			for _, m := range variableOfGrafana.FindAllStringSubmatch(text, -1) {
				used = append(used, m[1])
			}
		}
		var known []string
		for _, v := range d.Templating.List {
			known = append(known, v.Name)
			add(v.Definition)
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				add(target.Expr)
			}
		}
		used = slices.DeleteFunc(used, func(name string) bool { return strings.HasPrefix(name, "__") })
		slices.Sort(used)
		slices.Sort(known)
		assert.Equal(t, known, slices.Compact(used), d.UID)
	}
}

// TestTwoExporters: no query counts the cluster twice where two exporters tell of it.
func TestTwoExporters(t *testing.T) {
	for expr, want := range map[string]string{
		`sum(gojail_slurm_jobs{state="running"})`:       `sum(max without (instance) (gojail_slurm_jobs{state="running"}))`,
		`60 * rate(gojail_slurm_jobs_failed_total[5m])`: `60 * max without (instance) (rate(gojail_slurm_jobs_failed_total[5m]))`,
		`a / (gojail_slurm_gpus > 0)`:                   `a / (max without (instance) (gojail_slurm_gpus) > 0)`,
		`sum(gojail_health_drained)`:                    `sum(gojail_health_drained)`,
	} {
		assert.Equal(t, want, mergeExporters(expr))
	}
	series, merged := regexp.MustCompile(`gojail_slurm_`), regexp.MustCompile(`max without \(instance\) \((?:rate\(|increase\()?gojail_slurm_`)
	count := 0
	for _, d := range readAll(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				found := len(series.FindAllString(target.Expr, -1))
				count += found
				assert.Len(t, merged.FindAllString(target.Expr, -1), found, "%s: %s: %s", d.UID, p.Title, target.Expr)
			}
		}
	}
	assert.Greater(t, count, 40)
}

var metricOfNodes = regexp.MustCompile(`gojail_(?:build|metrics|job|steps?|template|sandboxes|vfs?)[a-z0-9_]*`)

// TestMetricsOfNodesExist: the metrics of dashboards are those of docs/metrics.md, and all of these are on one.
func TestMetricsOfNodesExist(t *testing.T) {
	var documented, shown []string
	for _, m := range metrictest.ReadPage(t) {
		if m.OfNode {
			documented = append(documented, m.Name)
		}
	}
	for _, d := range readAll(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				for _, name := range metricOfNodes.FindAllString(target.Expr, -1) {
					shown = append(shown, regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, ""))
				}
			}
		}
	}
	slices.Sort(documented)
	slices.Sort(shown)
	assert.Equal(t, documented, slices.Compact(shown))
}

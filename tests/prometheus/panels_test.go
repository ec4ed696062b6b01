// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// dashboard is a dashboard as Grafana reads it.
type dashboard struct {
	UID        string
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type, Definition string
			IncludeAll             bool
		}
	}
}

type panel struct {
	Type, Title     string
	Targets         []struct{ Expr, LegendFormat string }
	Transformations []struct {
		Options struct {
			Include     struct{ Names []string }
			IndexByName map[string]int
		}
	}
}

func readDashboards(t *testing.T) (all []dashboard) {
	t.Helper()
	repository, err := harness.Repository()
	require.NoError(t, err)
	paths, err := filepath.Glob(filepath.Join(repository, "build/grafana/*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, "make builds the dashboards")
	for _, path := range paths {
		var d dashboard
		require.NoError(t, json.Unmarshal([]byte(readFile(t, path)), &d), path)
		all = append(all, d)
	}
	return all
}

// runJobs makes what dashboards show: a job with GPUs on both nodes, steps that fail in some ways, a template that is out of
// date. It returns the job, which runs until the test ends.
func (s *site) runJobs(t *testing.T) (job string) {
	t.Helper()
	script := "#!/bin/sh\nsrun -N2 sh -c 'touch begun.$SLURM_NODEID; while :; do sleep 0.05; done'\n"
	r := s.Do(harness.Command{User: harness.Alice, Stdin: script, Args: []string{"sbatch", "--parsable", "--jail=debian", "-N2", "--gres=gpu:2",
		"--job-name=a\"b\nc{d=\"e\"}" + strings.Repeat("é", 500)}})
	require.Zero(t, r.Code, r)
	job = strings.TrimSpace(r.Stdout)
	t.Cleanup(func() {
		s.Run(harness.Alice, "scancel", job)
		assert.True(t, s.WaitIdle(), s.Drained())
	})
	r = s.Do(harness.Command{User: harness.Alice, Args: []string{"sbatch", "--parsable", "--hold", "--jail=debian", "--wrap=true"}})
	require.Zero(t, r.Code, r)
	held := strings.TrimSpace(r.Stdout)
	t.Cleanup(func() { s.Run(harness.Alice, "scancel", held) })
	for node := range harness.Nodes {
		begun := fmt.Sprintf("/srv/jails/debian/home/alice/begun.%d", node)
		require.True(t, harness.Poll(harness.Timeout, func() bool { return s.Root("test", "-e", begun).Code == 0 }), begun)
	}
	return job
}

// failSteps lets steps fail on n1, for reasons of the user's and of the sandbox: the source of a mount of jail other is missing.
func (s *site) failSteps(t *testing.T, count int) {
	t.Helper()
	config := readFile(t, s.Path(harness.ConfigPath))
	require.NoError(t, s.WriteConfig(config+"[[jail.other.mounts]]\ndestination = \"/mnt\"\nsource = \"/nope\"\noptions = [\"bind\"]\n"))
	for range count {
		assert.NotZero(t, s.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=nosuch", "true").Code)
		assert.NotZero(t, s.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=other", "true").Code)
	}
	require.NoError(t, s.WriteConfig(config))
}

// damageRecord puts a damaged record of a sandbox on n2, as a job that ended in a power failure might.
func (s *site) damageRecord(t *testing.T) {
	t.Helper()
	const dir = "/run/gojail/n2/jobs/4242"
	require.Zero(t, s.Root("sh", "-c", "mkdir "+dir+" && echo rubbish >"+dir+"/debian").Code)
	t.Cleanup(func() { s.Root("rm", "-r", dir) })
}

// writeAll lets everything that writes metrics write them once.
func (s *site) writeAll(t *testing.T, page map[string][]string, job string, moment int) {
	t.Helper()
	for _, node := range harness.Nodes {
		r := s.Gojail(node, "metrics", "--output="+textfiles+"/gojail-%n.prom", "--dcgm-job-mapping="+mappings+"/%n")
		require.Zero(t, r.Code, r)
	}
	s.writeStandIn(t, page, job, moment)
}

var metricName = regexp.MustCompile(`\b(gojail|node|slurm|DCGM)_[A-Za-z0-9_]+`)

// metricsOf returns the metrics that a query names. Labels are no metrics: what is in braces or behind "by" and "on" is left out.
func metricsOf(query string) []string {
	query = regexp.MustCompile(`\{[^}]*\}|\b(by|on|group_left|group_right|without)\s*\([^)]*\)`).ReplaceAllString(query, "")
	return metricName.FindAllString(query, -1)
}

// TestEveryPanel: each query of each panel is executed and returns what it should, while a job runs.
func TestEveryPanel(t *testing.T) {
	s := newSite(t)
	page := readPage(t)
	job := s.runJobs(t)
	s.failSteps(t, 1)
	moment := 0
	write := func(rounds int) {
		for range rounds {
			moment++
			s.writeAll(t, page, job, moment)
			time.Sleep(time.Second) // what is scraped must differ
		}
	}
	s.damageRecord(t)
	require.Zero(t, s.Root("scontrol", "update", "nodename=n2", "state=drain", "reason=a \"test\"").Code)
	t.Cleanup(func() { s.Resume("n2") })
	hasExporter := s.startExporter(t)
	write(3)
	s.failSteps(t, 3)
	harness.RequireOutput(t, "in", s.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=debian", "echo", "in"))
	for _, node := range harness.Nodes {
		r := s.Root("gojail-healthcheck", "--node="+node)
		require.NotEqual(t, -1, r.Code, r)
	}
	write(4)

	used := map[string]bool{}
	results := map[string]string{}
	for _, d := range readDashboards(t) {
		if !hasExporter && (d.UID == "gojail-cluster" || d.UID == "gojail-scheduler") {
			continue
		}
		variables := s.chooseVariables(t, &d, job)
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				for _, metric := range metricsOf(target.Expr) {
					used[metric] = true
				}
				name := d.UID + ": " + p.Title
				_, isQuiet := quiet[name]
				patience := time.Now().Add(70 * time.Second) // at one of two steps of 30 seconds a busy machine may have been too slow to be scraped
				found, err := s.query(t, variables.Replace(target.Expr), p.Type == "timeseries")
				for !isQuiet && !uncertain[name] && err == nil && len(found) == 0 && time.Now().Before(patience) {
					write(1) // a step of 30 seconds has not passed yet
					found, err = s.query(t, variables.Replace(target.Expr), p.Type == "timeseries")
				}
				if !assert.NoError(t, err, "%s: %s", name, target.Expr) {
					continue
				}
				assert.True(t, uncertain[name] || isQuiet == (len(found) == 0), "%s: %s returns %v; what returns nothing must be in quiet_test.go, and no other", name, target.Expr, found)
				results[name] = joinWords(results[name], p.format(found, target.LegendFormat))
			}
		}
	}
	refused, err := s.query(t, "node_textfile_scrape_error == 1", false)
	require.NoError(t, err)
	assert.Empty(t, refused, "node_exporter takes the files of two slurmd on a machine")
	exported := s.labelValues(t, "__name__", `{job=~"node|slurm"}`)
	for _, metric := range s.labelValues(t, "__name__", `{job="stand-in"}`) {
		if isForeign(metric) != "" {
			exported = append(exported, metric)
		}
	}
	for _, metric := range slices.Sorted(maps.Keys(used)) {
		assert.True(t, slices.Contains(exported, metric) || elsewhere[metric] != "", "%s: no one exports it, and foreign_test.go does not say where it comes from", metric)
	}
	for name, want := range expected(job) {
		if _, asked := results[name]; !asked && !hasExporter {
			continue
		}
		assert.Equal(t, want, results[name], name)
	}
	s.checkAlerts(t)
	s.checkMapping(t, job)
}

// chooseVariables returns the replacements of a dashboard's variables, each of which has values in Prometheus.
func (s *site) chooseVariables(t *testing.T, d *dashboard, job string) *strings.Replacer {
	t.Helper()
	pairs := []string{"$__range", "1h"}
	definition := regexp.MustCompile(`^label_values\((.*), ([A-Za-z_]+)\)$`)
	for _, v := range d.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		m := definition.FindStringSubmatch(v.Definition)
		require.NotNil(t, m, "%s: %s", d.UID, v.Definition)
		values := s.labelValues(t, m[2], strings.NewReplacer(pairs...).Replace(m[1]))
		if assert.NotEmpty(t, values, "%s: %s has no values", d.UID, v.Definition) {
			chosen := map[string]string{"job_id": job, "node": "n1"}[v.Name]
			if v.IncludeAll {
				chosen = ".*"
			}
			pairs = append(pairs, "$"+v.Name, chosen)
		}
	}
	return strings.NewReplacer(pairs...)
}

var labelOfLegend = regexp.MustCompile(`\{\{(\w+)\}\}`)

// format returns what a panel shows: a number, the cells of a table, or the lines of a graph with their last values.
func (p *panel) format(found []series, legend string) string {
	var lines []string
	for _, one := range found {
		line := ""
		switch p.Type {
		case "stat":
			line = fmt.Sprintf("%.4g", one.value)
		case "timeseries":
			line = labelOfLegend.ReplaceAllStringFunc(legend, func(label string) string { return one.labels[strings.Trim(label, "{}")] })
			line = strings.Join(strings.Fields(fmt.Sprintf("%s %.4g", line, one.value)), " ")
		case "table":
			columns := p.Transformations[1].Options.IndexByName
			for _, column := range slices.SortedFunc(maps.Keys(columns), func(a, b string) int { return columns[a] - columns[b] }) {
				cell := one.labels[column]
				if column == "Value" {
					cell = fmt.Sprintf("%.4g", one.value)
				}
				line = joinWords(line, cell)
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

func joinWords(a, b string) string { return strings.TrimSpace(a + " " + b) }

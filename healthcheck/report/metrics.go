// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/run"
	"github.com/gojail/gojail/internal/trusted"
	"github.com/gojail/gojail/internal/version"
	"github.com/gojail/gojail/internal/wholefile"
)

const prefix = "gojail_health_"

// MetricsTime is the time for writing the file, in addition to the duration of the run, so that
// a run in which all checks hang still has metrics.
const MetricsTime = time.Second

// WriteMetrics replaces the file of node_exporter's textfile collector atomically. Only root
// may be able to write its directory. write is ReplaceFile with a deadline, since the disk may
// hang; nil: ReplaceFile itself.
//
// The text format (prometheus.io, "Exposition formats") is implemented here, since Prometheus's
// own package takes as long to load as all checks together. The tests parse the file with that
// package.
func (r *Report) WriteMetrics(path string, write run.Writer) error {
	text, err := r.formatMetrics()
	if e := replaceMetricsFile(path, text, write); e != nil {
		err = errors.Join(err, fmt.Errorf("cannot write the metrics %s: %w", path, e))
	}
	return err
}

// replaceMetricsFile writes the file with write, limited to MetricsTime, or with ReplaceFile if
// write is nil.
func replaceMetricsFile(path string, text []byte, write run.Writer) error {
	if write == nil {
		return ReplaceFile(path, text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), MetricsTime)
	defer cancel()
	return write(ctx, path, text)
}

// formatMetrics returns all metrics, grouped by name. An invalid metric of a check is left out
// and reported as an error.
func (r *Report) formatMetrics() ([]byte, error) {
	groups := [][]check.Metric{r.addNode(r.listRunMetrics())}
	for _, result := range r.Results {
		groups = append(groups, r.addNode(result.Metrics))
	}
	return formatAll(groups)
}

// addNode returns the metrics with the label node: two slurmd of one machine write a file each, and the series of all
// files of the textfile collector must differ.
func (r *Report) addNode(all []check.Metric) []check.Metric {
	all = slices.Clone(all)
	for i := range all {
		labels := map[string]string{"node": r.Node}
		maps.Copy(labels, all[i].Labels)
		all[i].Labels = labels
	}
	return all
}

// WriteMetrics replaces a file of the textfile collector with these metrics.
func WriteMetrics(path string, all []check.Metric) error {
	text, err := formatAll([][]check.Metric{all})
	if e := ReplaceFile(path, text); e != nil {
		err = errors.Join(err, fmt.Errorf("cannot write the metrics %s: %w", path, e))
	}
	return err
}

func formatAll(groups [][]check.Metric) ([]byte, error) {
	families := map[string]*family{}
	var errs []error
	add := func(all []check.Metric) {
		for _, m := range all {
			f := families[m.Name]
			if f == nil {
				f = &family{rows: map[string]bool{}}
				families[m.Name] = f
			}
			if err := f.addMetric(m); err != nil {
				errs = append(errs, fmt.Errorf("metric %s: %w", m.Name, err))
			}
		}
	}
	for _, group := range groups {
		add(group)
	}
	text := make([]byte, 0, 16<<10)
	for _, name := range slices.Sorted(maps.Keys(families)) {
		f := families[name]
		if len(f.rows) == 0 {
			continue
		}
		// A counter's value is that of the device and may restart: exported as a gauge.
		text = append(text, "# HELP "+prefix+name+" "+escape.Replace(f.help)+"\n# TYPE "+prefix+name+" gauge\n"...)
		text = append(text, f.text...)
	}
	return text, errors.Join(errs...)
}

// family is the set of metrics with one name.
type family struct {
	help  string
	names []string        // sorted names of labels
	rows  map[string]bool // existing label sets
	text  []byte
}

// addMetric adds a metric, or returns an error for one that would make Prometheus reject the
// whole file. The first metric defines the help text and the label names.
func (f *family) addMetric(m check.Metric) error {
	if f.help == "" {
		f.help = m.Help
	}
	if len(f.rows) == 0 {
		f.names = slices.Sorted(maps.Keys(m.Labels))
		for _, word := range append([]string{m.Name}, f.names...) {
			if word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" || word[0] <= '9' {
				return fmt.Errorf("invalid name %.50q", word)
			}
		}
	}
	text, ok := f.appendLabels(append(f.text, prefix+m.Name...), m.Labels)
	if !ok {
		return errors.New("labels differ from the first metric of this name")
	}
	row := string(text[len(f.text):])
	if f.rows[row] {
		return errors.New("duplicate labels")
	}
	f.rows[row] = true
	f.text = append(strconv.AppendFloat(append(text, ' '), m.Value, 'g', -1, 64), '\n')
	return nil
}

// listRunMetrics returns the metrics of the run itself.
func (r *Report) listRunMetrics() []check.Metric {
	one := func(name, help string, value float64) check.Metric {
		return check.Metric{Name: name, Help: help, Value: value}
	}
	all := make([]check.Metric, 0, 5+3*len(r.Results))
	all = append(all,
		check.Metric{Name: "info", Help: "The version of gojail, as a label.", Value: 1,
			Labels: map[string]string{"version": version.Text()}},
		one("last_run_timestamp_seconds", "Start time of the last run.", float64(r.Began.UnixMilli())/1000),
		one("run_duration_seconds", "Duration of the last run.", r.Took.Seconds()),
		one("drained", "1 if the node is drained by its health checks.", boolValue(r.Outcome.Record != nil)),
		one("run_errors", "Number of errors that made the last run incomplete.",
			float64(len(r.Errors))+boolValue(r.Outcome.Err != nil)))
	for _, result := range r.Results {
		name := result.Check.Name
		whose := map[string]string{"check": name, "severity": string(result.Check.Severity)}
		status := one("check_status", "Verdict of a check: 0 unknown, 1 ok, 2 warn, 3 fail, 4 not applicable.",
			float64(result.Verdict))
		counts := one("check_counts", "1 if the check counts as bad, after enough runs in a row.",
			boolValue(r.History.Checks[name].Counts))
		took := one("check_duration_seconds", "Duration of the check in the last run.", result.Took.Seconds())
		status.Labels, counts.Labels, took.Labels = whose, whose, map[string]string{"check": name}
		all = append(all, status, counts, took)
	}
	return all
}

// boolValue returns 1 for true and 0 for false.
func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var (
	escape      = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// appendLabels appends the labels to a text, or returns false if their names differ from those
// of the family.
func (f *family) appendLabels(text []byte, all map[string]string) (row []byte, ok bool) {
	if len(all) != len(f.names) {
		return nil, false
	}
	for i, name := range f.names {
		value, known := all[name]
		if !known {
			return nil, false
		}
		text = append(text, "{,"[min(i, 1)])
		text = append(append(text, name...), `="`...)
		text = append(append(text, escapeLabel.Replace(strings.ToValidUTF8(value, "?"))...), '"')
	}
	if len(all) > 0 {
		text = append(text, '}')
	}
	return text, true
}

// ReplaceFile writes a new file beside the old one, under a name that the collector (*.prom)
// ignores, and renames it. The file is not synced to disk, since its content is obsolete after
// a crash. The directory must not be writable by others: root would open a file that they put
// there.
func ReplaceFile(path string, text []byte) error {
	if err := trusted.Parents(path); err != nil {
		return err
	}
	return wholefile.Write(path, text, 0o644)
}

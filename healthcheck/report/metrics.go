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
	"github.com/gojail/gojail/internal/wholefile"
)

const prefix = "gojail_health_"

// MetricsTime is for the file to be written, beyond what the run itself may take: a
// run in which everything hangs is worth its metrics.
const MetricsTime = time.Second

// Metrics replaces the file for node_exporter's textfile collector, at once. Its
// directory must be root's. write is Replace with a deadline, as the disk may hang.
// nil: Replace itself.
//
// The text format (prometheus.io, "Exposition formats") is written here: Prometheus's
// own package takes as long to load as all checks together. The tests read it with that.
func (r *Report) Metrics(path string, write run.Writer) error {
	text, err := r.exposition()
	if e := put(path, text, write); e != nil {
		err = errors.Join(err, fmt.Errorf("cannot write the metrics %s: %w", path, e))
	}
	return err
}

func put(path string, text []byte, write run.Writer) error {
	if write == nil {
		return Replace(path, text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), MetricsTime)
	defer cancel()
	return write(ctx, path, text)
}

// exposition is all metrics, those of one name together. A check's metric that does
// not fit is left out and is an error.
func (r *Report) exposition() ([]byte, error) {
	families := map[string]*family{}
	var errs []error
	add := func(all []check.Metric) {
		for _, m := range all {
			f := families[m.Name]
			if f == nil {
				f = &family{rows: map[string]bool{}}
				families[m.Name] = f
			}
			if err := f.add(m); err != nil {
				errs = append(errs, fmt.Errorf("metric %s: %w", m.Name, err))
			}
		}
	}
	add(r.own())
	for _, result := range r.Results {
		add(result.Metrics)
	}
	text := make([]byte, 0, 16<<10)
	for _, name := range slices.Sorted(maps.Keys(families)) {
		f := families[name]
		if len(f.rows) == 0 {
			continue
		}
		// A counter's value is the device's own, which may begin anew: a gauge.
		text = append(text, "# HELP "+prefix+name+" "+escape.Replace(f.help)+"\n# TYPE "+prefix+name+" gauge\n"...)
		text = append(text, f.text...)
	}
	return text, errors.Join(errs...)
}

// family is the metrics of one name.
type family struct {
	help  string
	names []string        // of labels, sorted
	rows  map[string]bool // labels that there are
	text  []byte
}

// add refuses what would make Prometheus refuse the whole file. The first one says
// what help and labels the family has.
func (f *family) add(m check.Metric) error {
	if f.help == "" {
		f.help = m.Help
	}
	if len(f.rows) == 0 {
		f.names = slices.Sorted(maps.Keys(m.Labels))
		for _, word := range append([]string{m.Name}, f.names...) {
			if word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" || word[0] <= '9' {
				return fmt.Errorf("%.50q is no name", word)
			}
		}
	}
	text, ok := f.labels(append(f.text, prefix+m.Name...), m.Labels)
	if !ok {
		return errors.New("has other labels than before")
	}
	row := string(text[len(f.text):])
	if f.rows[row] {
		return errors.New("is there twice")
	}
	f.rows[row] = true
	f.text = append(strconv.AppendFloat(append(text, ' '), m.Value, 'g', -1, 64), '\n')
	return nil
}

// own are the numbers of the run itself.
func (r *Report) own() []check.Metric {
	one := func(name, help string, value float64) check.Metric {
		return check.Metric{Name: name, Help: help, Value: value}
	}
	all := make([]check.Metric, 0, 4+3*len(r.Results))
	all = append(all,
		one("last_run_timestamp_seconds", "When the last run began.", float64(r.Began.UnixMilli())/1000),
		one("run_duration_seconds", "How long the last run took.", r.Took.Seconds()),
		one("drained", "1 if the node is drained by its health checks.", number(r.Outcome.Record != nil)),
		one("run_errors", "What kept the last run from being complete.", float64(len(r.Errors))+number(r.Outcome.Err != nil)))
	for _, result := range r.Results {
		name := result.Check.Name
		whose := map[string]string{"check": name, "severity": string(result.Check.Severity)}
		status := one("check_status", "What a check found: 0 unknown, 1 ok, 2 warn, 3 fail, 4 not applicable.", float64(result.Verdict))
		counts := one("check_counts", "1 if the check counts as bad, after enough runs in a row.", number(r.History.Checks[name].Counts))
		took := one("check_duration_seconds", "How long the check took in the last run.", result.Took.Seconds())
		status.Labels, counts.Labels, took.Labels = whose, whose, map[string]string{"check": name}
		all = append(all, status, counts, took)
	}
	return all
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var (
	escape      = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// labels adds them to a text, if they are those of the family.
func (f *family) labels(text []byte, all map[string]string) (row []byte, ok bool) {
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

// Replace writes beside the file, where the collector looks for *.prom only, and
// renames. It may be lost in a crash of the node: it is of this minute. In a directory
// that others can write, root would open what they put there.
func Replace(path string, text []byte) error {
	if err := trusted.Parents(path); err != nil {
		return err
	}
	return wholefile.Write(path, text, 0o644)
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck"
)

const prefix = "gojail_health_"

// Metrics replaces the file for node_exporter's textfile collector, at once. Its
// directory must be root's.
//
// The text format (prometheus.io, "Exposition formats") is written here: Prometheus's
// own package takes as long to load as all checks together. The tests read it with that.
func (r *Report) Metrics(path string) error {
	text, err := r.exposition()
	if e := replace(path, text); e != nil {
		err = errors.Join(err, fmt.Errorf("cannot write the metrics %s: %w", path, e))
	}
	return err
}

// exposition is all metrics, those of one name together. A check's metric that does
// not fit is left out and is an error.
func (r *Report) exposition() (string, error) {
	all := r.own()
	for _, result := range r.Results {
		all = append(all, result.Metrics...)
	}
	families, order := map[string][]healthcheck.Metric{}, []string{}
	var errs []error
	for _, m := range all {
		before := families[m.Name]
		if err := fits(before, m); err != nil {
			errs = append(errs, fmt.Errorf("metric %s: %w", m.Name, err))
			continue
		}
		if before == nil {
			order = append(order, m.Name)
		}
		families[m.Name] = append(before, m)
	}
	slices.Sort(order)
	var b strings.Builder
	for _, name := range order {
		family := families[name]
		// A counter's value is the device's own, which may begin anew: a gauge.
		fmt.Fprintf(&b, "# HELP %s%s %s\n# TYPE %[1]s%[2]s gauge\n", prefix, name, escape.Replace(family[0].Help))
		for _, m := range family {
			fmt.Fprintf(&b, "%s%s%s %s\n", prefix, name, labels(m.Labels), strconv.FormatFloat(m.Value, 'g', -1, 64))
		}
	}
	return b.String(), errors.Join(errs...)
}

// own are the numbers of the run itself.
func (r *Report) own() []healthcheck.Metric {
	one := func(name, help string, value float64) healthcheck.Metric {
		return healthcheck.Metric{Name: name, Help: help, Value: value}
	}
	all := []healthcheck.Metric{
		one("last_run_timestamp_seconds", "When the last run began.", float64(r.Began.UnixMilli())/1000),
		one("run_duration_seconds", "How long the last run took.", r.Took.Seconds()),
		one("drained", "1 if the node is drained by its health checks.", number(r.Outcome.Record != nil)),
		one("run_errors", "What kept the last run from being complete.", float64(len(r.Errors))+number(r.Outcome.Err != nil)),
	}
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

// fits refuses what would make Prometheus refuse the whole file.
func fits(family []healthcheck.Metric, m healthcheck.Metric) error {
	for _, word := range append(slices.Collect(maps.Keys(m.Labels)), m.Name) {
		if word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" || word[0] <= '9' {
			return fmt.Errorf("%.50q is no name", word)
		}
	}
	for _, other := range family {
		if maps.Equal(other.Labels, m.Labels) {
			return errors.New("is there twice")
		}
		if !slices.Equal(slices.Sorted(maps.Keys(other.Labels)), slices.Sorted(maps.Keys(m.Labels))) {
			return errors.New("has other labels than before")
		}
	}
	return nil
}

var (
	escape      = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func labels(all map[string]string) string {
	if len(all) == 0 {
		return ""
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, name+`="`+escapeLabel.Replace(strings.ToValidUTF8(all[name], "?"))+`"`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// replace writes beside the file, where the collector looks for *.prom only, and
// renames. It may be lost in a crash of the node: it is of this minute.
func replace(path, text string) error {
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path+".new"))
	}
	return nil
}

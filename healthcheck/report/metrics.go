// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gojail/gojail/healthcheck"
)

const prefix = "gojail_health_"

// Metrics replaces the file for node_exporter's textfile collector, at once. Its
// directory must be root's.
func (r *Report) Metrics(path string) error {
	registry := prometheus.NewRegistry()
	errs := r.own(registry)
	seen := map[string]*prometheus.GaugeVec{}
	for _, result := range r.Results {
		for _, m := range result.Metrics {
			errs = append(errs, add(registry, seen, m))
		}
	}
	if err := prometheus.WriteToTextfile(path, registry); err != nil {
		errs = append(errs, fmt.Errorf("cannot write the metrics %s: %w", path, err))
	}
	return errors.Join(errs...)
}

// own are the numbers of the run itself.
func (r *Report) own(registry *prometheus.Registry) []error {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, labels)
	}
	status := gauge("check_status", "What a check found: 0 unknown, 1 ok, 2 warn, 3 fail, 4 not applicable.", "check", "severity")
	counts := gauge("check_counts", "1 if the check counts as bad, after enough runs in a row.", "check", "severity")
	took := gauge("check_duration_seconds", "How long the check took in the last run.", "check")
	last := gauge("last_run_timestamp_seconds", "When the last run began.")
	whole := gauge("run_duration_seconds", "How long the last run took.")
	drained := gauge("drained", "1 if the node is drained by its health checks.")
	trouble := gauge("run_errors", "What kept the last run from being complete.")
	for _, result := range r.Results {
		name, severity := result.Check.Name, string(result.Check.Severity)
		status.WithLabelValues(name, severity).Set(float64(result.Verdict))
		counts.WithLabelValues(name, severity).Set(number(r.History.Checks[name].Counts))
		took.WithLabelValues(name).Set(result.Took.Seconds())
	}
	last.WithLabelValues().Set(float64(r.Began.UnixMilli()) / 1000)
	whole.WithLabelValues().Set(r.Took.Seconds())
	drained.WithLabelValues().Set(number(r.Outcome.Record != nil))
	trouble.WithLabelValues().Set(float64(len(r.Errors)) + number(r.Outcome.Err != nil))
	var errs []error
	for _, c := range []prometheus.Collector{status, counts, took, last, whole, drained, trouble} {
		errs = append(errs, registry.Register(c))
	}
	return errs
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// add sets one metric of a check's. A Counter's value is the device's own, so all
// of them are written as gauges.
func add(registry *prometheus.Registry, seen map[string]*prometheus.GaugeVec, m healthcheck.Metric) error {
	vec := seen[m.Name]
	if vec == nil {
		vec = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + m.Name, Help: m.Help}, slices.Sorted(maps.Keys(m.Labels)))
		if err := registry.Register(vec); err != nil {
			return fmt.Errorf("metric %s: %w", m.Name, err)
		}
		seen[m.Name] = vec
	}
	g, err := vec.GetMetricWith(m.Labels)
	if err != nil {
		return fmt.Errorf("metric %s: %w", m.Name, err)
	}
	g.Set(m.Value)
	return nil
}

// SPDX-License-Identifier: Apache-2.0

// Package metric makes metrics of Prometheus from values that are determined when the metrics are requested.
package metric

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Family is a metric with its labels.
type Family struct {
	Desc *prometheus.Desc
	kind prometheus.ValueType
}

// NewGauge returns a gauge.
func NewGauge(name, help string, labels ...string) Family {
	return Family{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

// NewCounter returns a counter.
func NewCounter(name, help string, labels ...string) Family {
	f := NewGauge(name, help, labels...)
	f.kind = prometheus.CounterValue
	return f
}

// Series returns one series, with the values of the labels in their order. It makes the values valid UTF-8, because one
// invalid value would cost the whole page.
func (f Family) Series(value float64, labels ...string) prometheus.Metric {
	values := make([]string, len(labels))
	for i, l := range labels {
		values[i] = strings.ToValidUTF8(l, "?")
	}
	series, err := prometheus.NewConstMetric(f.Desc, f.kind, value, values...)
	if err != nil {
		return prometheus.NewInvalidMetric(f.Desc, err)
	}
	return series
}

// Gather returns the metrics that a function sends, checked by an empty registry.
func Gather(registry *prometheus.Registry, send func(chan<- prometheus.Metric)) ([]*dto.MetricFamily, error) {
	if err := registry.Register(collector(send)); err != nil {
		return nil, fmt.Errorf("cannot make the metrics: %w", err)
	}
	families, err := registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("cannot make the metrics: %w", err)
	}
	return families, nil
}

type collector func(chan<- prometheus.Metric)

// Describe describes nothing, because the metrics depend on the values.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends all metrics.
func (c collector) Collect(out chan<- prometheus.Metric) { c(out) }

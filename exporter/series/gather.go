// SPDX-License-Identifier: Apache-2.0

// Package series turns what Slurm said into metrics. They are made once per interval, for all who scrape; only how old
// they are is added each time.
package series

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/gojail/gojail/exporter/poll"
	"github.com/gojail/gojail/internal/metric"
	"github.com/gojail/gojail/internal/version"
)

// Gatherer has the metrics of what Slurm said last.
type Gatherer struct {
	View  func() poll.View
	Slurm func() (release, format string)
	Users int // users with most RPCs that have series of their own
	Now   func() time.Time

	mutex sync.Mutex
	key   string // of what data was made from
	data  []*dto.MetricFamily
}

// Gather returns all metrics, in the order of their names.
func (g *Gatherer) Gather() ([]*dto.MetricFamily, error) {
	v := g.View()
	data, err := g.makeData(&v)
	if err != nil {
		return nil, err
	}
	state, err := gather(func(s sink) { g.addState(s, &v) })
	if err != nil {
		return nil, err
	}
	all := slices.Concat(data, state)
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, nil
}

// makeData returns the metrics of the cluster: those of before, if Slurm said nothing new since.
func (g *Gatherer) makeData(v *poll.View) ([]*dto.MetricFamily, error) {
	key := fmt.Sprint(v.Nodes != nil, v.Jobs != nil, v.Diag != nil)
	for _, name := range poll.Sources {
		key += " " + v.Sources[name].At.String()
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if key == g.key {
		return g.data, nil
	}
	data, err := gather(func(s sink) {
		if v.Nodes != nil {
			s.addNodes(v.Nodes.List)
		}
		if v.Jobs != nil {
			s.addJobs(v.Jobs, v.Nodes)
		}
		if v.Diag != nil {
			s.addDiag(v.Diag, g.Users)
		}
	})
	if err == nil {
		g.key, g.data = key, data
	}
	return data, err
}

// addState adds what is known of the exporter itself and the controllers.
func (g *Gatherer) addState(s sink, v *poll.View) {
	s.add(buildInfo, 1, version.Text())
	if release, format := g.Slurm(); release != "" {
		s.add(slurmInfo, 1, release, format)
	}
	if !v.Asked {
		return
	}
	s.add(active, boolValue(v.Active))
	if v.Active {
		s.add(controllerUp, boolValue(v.Up))
	}
	seen := map[string]bool{}
	for _, c := range v.Controllers {
		if v.Active && !seen[c.Host] {
			s.add(controllerResponding, boolValue(c.Up), c.Host)
			seen[c.Host] = true
		}
	}
	present := map[string]bool{poll.Nodes: v.Nodes != nil, poll.Jobs: v.Jobs != nil, poll.Diag: v.Diag != nil}
	for _, name := range poll.Sources {
		source := v.Sources[name]
		s.add(commands, float64(source.Runs), name)
		if name != poll.Ping {
			s.add(oddRecords, float64(source.Odd), name)
		}
		for _, reason := range poll.Reasons {
			s.add(commandFailures, float64(source.Failures[reason]), name, reason)
		}
		if source.Runs > 0 {
			s.add(commandTime, source.Took.Seconds(), name)
		}
		if name == poll.Ping || !v.Active {
			continue
		}
		if !source.At.IsZero() {
			s.add(dataAge, max(0, g.Now().Sub(source.At).Seconds()), name)
		}
		s.add(dataStale, boolValue(source.Failing || !v.Up || source.Runs > 0 && !present[name]), name)
	}
}

// sink takes metrics.
type sink chan<- prometheus.Metric

// add sends one series.
func (s sink) add(f metric.Family, value float64, labels ...string) { s <- f.Series(value, labels...) }

// gather returns the metrics that a function sends.
func gather(send func(sink)) ([]*dto.MetricFamily, error) {
	return metric.Gather(prometheus.NewRegistry(), func(out chan<- prometheus.Metric) { send(out) })
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/metric"
)

// Render returns the metrics as text.
func Render(f *Facts) ([]byte, error) {
	families, err := metric.Gather(prometheus.NewPedanticRegistry(), f.send)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			return nil, fmt.Errorf("cannot make the metrics: %w", err)
		}
	}
	return text.Bytes(), nil
}

// send sends all metrics of the facts.
func (f *Facts) send(out chan<- prometheus.Metric) {
	s := sink{f.node, out}
	s.add(buildInfo, 1, f.version)
	s.add(metricsTime, seconds(f.time))
	s.add(metricsErrors, float64(len(f.Problems)))
	s.add(endsFailed, float64(f.endsFailed))
	for i := range f.jobs {
		s.addJob(&f.jobs[i])
	}
	for i := range f.templates {
		s.addTemplate(&f.templates[i])
	}
	for jail, l := range f.launches {
		s.addLaunches(jail, l)
	}
	for i := range f.VFs {
		s.addVF(f, &f.VFs[i])
	}
	s.addHeldVFs(f.HeldVFs)
	for _, kind := range slices.SortedFunc(maps.Keys(f.sandboxes), func(a, b sandboxKind) int {
		return cmp.Or(strings.Compare(a.jail, b.jail), strings.Compare(a.state, b.state))
	}) {
		s.add(sandboxCount, float64(f.sandboxes[kind]), kind.jail, kind.state)
	}
}

// sink takes the metrics of one node.
type sink struct {
	node string
	out  chan<- prometheus.Metric
}

// add sends one series.
func (s sink) add(f metric.Family, value float64, labels ...string) {
	s.out <- f.Series(value, append([]string{s.node}, labels...)...)
}

func (s sink) addJob(j *job) {
	for _, jail := range j.jails {
		s.add(jobInfo, 1, j.id, j.user, jail.name, jail.version)
	}
	for _, g := range j.gpus {
		s.add(jobGPU, 1, j.id, j.user, g.jail, g.index, g.uuid, g.instance, g.device, g.pci)
	}
	if !j.start.IsZero() {
		s.add(jobStart, seconds(j.start), j.id)
	}
	for f, value := range map[*metric.Family]*float64{&jobMemory: j.usage.memory, &jobMemoryPeak: j.usage.memoryPeak,
		&jobCPU: j.usage.cpuSeconds} {
		if value != nil {
			s.add(*f, *value, j.id)
		}
	}
	if j.scratchKnown {
		s.add(jobScratch, float64(j.scratch.Used), j.id)
	}
	if j.scratchKnown && j.scratch.Limit > 0 {
		s.add(jobScratchLimit, float64(j.scratch.Limit), j.id)
	}
}

// addLaunches sends the counters of a jail. It sends 0 for a reason that has not occurred, so that its first occurrence
// is an increase.
func (s sink) addLaunches(jail string, l state.Launches) {
	for i, reason := range contract.FailReasons {
		s.add(stepsFailed, float64(l.Failed[i]), jail, reason)
	}
	if jail == "" {
		return // a step without a jail enters none
	}
	s.add(stepsEntered, float64(l.Entered), jail)
	buckets, count := map[float64]uint64{}, uint64(0)
	for i, bound := range contract.TookBounds {
		count += l.Took[i]
		buckets[float64(bound)/1e6] = count
	}
	count += l.Took[len(contract.TookBounds)]
	s.out <- prometheus.MustNewConstHistogram(stepEntry.Desc, count, float64(l.TookUs)/1e6, buckets, s.node,
		strings.ToValidUTF8(jail, "?"))
}

func (s sink) addTemplate(t *template) {
	s.add(templateInfo, 1, t.jail, t.key, t.version)
	s.add(templateStart, seconds(t.start), t.jail)
	if t.judged {
		s.add(templateCurrent, boolValue(t.current), t.jail)
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// verdicts on an aim. "unclear": the median is beyond the aim, the interval is not.
const (
	met     = "met"
	unclear = "unclear"
	missed  = "MISSED"
	missing = "not measured"
)

// aim is what a figure should be: a difference between two candidates.
type aim struct {
	about       string
	mode        string
	of, base    string
	figure      func(*samples) []float64
	most        float64
	explanation string
}

func wallTimes(s *samples) []float64 { return s.Wall }
func cpuTimes(s *samples) []float64  { return s.CPU }

// aims on launches, in milliseconds.
var aims = []aim{
	{"first step: wall, against prepared", "first", "gojail", "prepared", wallTimes, 0, "no more than the prepared tree"},
	{"first step: node CPU, against plain", "first", "gojail", "plain", cpuTimes, 1.5, ""},
	{"later step: wall, against setns", "later", "gojail", "setns", wallTimes, 0, "the floor"},
	{"later step: wall, against plain", "later", "gojail", "plain", wallTimes, 0.4, "what the floor costs"},
	{"later step: node CPU, against setns", "later", "gojail", "setns", cpuTimes, 0, "the floor"},
	{"later step: node CPU, against plain", "later", "gojail", "plain", cpuTimes, 0.4, "what the floor costs"},
	{"no jail: wall, against noop", "later", "gojailnone", "noop", wallTimes, 0, "the empty plugin"},
	{"no jail: node CPU, against noop", "later", "gojailnone", "noop", cpuTimes, 0, "the empty plugin"},
	{"64 tasks: wall, against plain", "n64", "gojail", "plain", wallTimes, 5, ""},
	{"all isolation: first step, wall, against plain", "first", "gojail", "plain", wallTimes, 3, ""},
	{"all isolation: later step, wall, against plain", "later", "gojail", "plain", wallTimes, 0.5, ""},
	{"all isolation: a batch job's step, wall, against plain", "batch", "gojail", "plain", wallTimes, 0.5, ""},
}

// comparisons are shown as well, and have no aim.
var comparisons = []aim{
	{"A/A: wall", "first", "plain2", "plain", wallTimes, math.Inf(1), ""},
	{"A/A: node CPU", "first", "plain2", "plain", cpuTimes, math.Inf(1), ""},
	{"first step: wall, against the other version", "first", "gojail", "other", wallTimes, math.Inf(1), ""},
	{"first step: node CPU, against the other version", "first", "gojail", "other", cpuTimes, math.Inf(1), ""},
	{"later step: wall, against the other version", "later", "gojail", "other", wallTimes, math.Inf(1), ""},
	{"later step: node CPU, against the other version", "later", "gojail", "other", cpuTimes, math.Inf(1), ""},
	{"A/A: later step, wall", "later", "plain2", "plain", wallTimes, math.Inf(1), ""},
	{"A/A: later step, node CPU", "later", "plain2", "plain", cpuTimes, math.Inf(1), ""},
	{"A/A: wall, 64 tasks", "n64", "plain2", "plain", wallTimes, math.Inf(1), ""},
	{"first step: wall, against noop", "first", "gojail", "noop", wallTimes, math.Inf(1), ""},
	{"first step: node CPU, against noop", "first", "gojail", "noop", cpuTimes, math.Inf(1), ""},
	{"whole job: wall, against plain", "job", "gojail", "plain", wallTimes, math.Inf(1), ""},
	{"whole job: node CPU, against plain", "job", "gojail", "plain", cpuTimes, math.Inf(1), ""},
	{"whole job: node CPU, against noopepilog", "job", "gojail", "noopepilog", cpuTimes, math.Inf(1), ""},
	{"job_epilog alone: node CPU", "job", "noopepilog", "noop", cpuTimes, math.Inf(1), ""},
	{"64 tasks: node CPU, against plain", "n64", "gojail", "plain", cpuTimes, math.Inf(1), ""},
	{"64 tasks: wall, against setns", "n64", "gojail", "setns", wallTimes, math.Inf(1), ""},
}

// listFeatureAims returns the aims that compare features with a jail that isolates only the files.
func listFeatureAims() (list []aim) {
	add := func(about, of, base string) {
		for _, step := range []string{"first", "later"} {
			list = append(list, aim{about + ": " + step + " step, wall", step, of, base, wallTimes, math.Inf(1), ""},
				aim{about + ": " + step + " step, node CPU", step, of, base, cpuTimes, math.Inf(1), ""})
		}
	}
	add("a jail alone, against plain", "gojailopen", "plain")
	for _, j := range isolated[1:] {
		add(j.about, "gojail"+j.name, "gojailopen")
	}
	add("all isolation", "gojail", "gojailopen")
	return list
}

// formatVerdict compares an estimate with its limit.
func formatVerdict(e estimate, most float64) string {
	switch {
	case math.IsNaN(e.Median):
		return missing
	case e.Median <= most:
		return met
	case e.Low <= most:
		return unclear
	}
	return missed
}

// judged is one line of the verdict.
type judged struct {
	About   string   `json:"about"`
	Figure  estimate `json:"figure"`
	Aim     string   `json:"aim"`
	Verdict string   `json:"verdict"`
}

// compareModes compares two candidates in a mode, if both were measured.
func (r *report) compareModes(a aim, random *rand.Rand) estimate {
	for _, m := range r.Modes {
		if of, base := m.Samples[a.of], m.Samples[a.base]; m.Mode == a.mode && of != nil && base != nil {
			return comparePairs(a.figure(of), a.figure(base), random)
		}
	}
	nan := math.NaN()
	return estimate{nan, nan, nan, 0}
}

// judgeAims judges all aims, including those on memory.
func (r *report) judgeAims(random *rand.Rand) {
	for _, a := range aims {
		e := r.compareModes(a, random)
		text := fmt.Sprintf("<= %+.1f ms", a.most)
		if a.explanation != "" {
			text += " (" + a.explanation + ")"
		}
		r.Verdicts = append(r.Verdicts, judged{a.about, e, text, formatVerdict(e, a.most)})
	}
	for _, a := range append(comparisons, listFeatureAims()...) {
		if e := r.compareModes(a, random); e.N > 0 {
			r.Verdicts = append(r.Verdicts, judged{a.about, e, "-", "-"})
		}
	}
	private := func(p process) float64 { return p.Private }
	stepd := func(m memory) process { return m.Stepd }
	srun := func(m memory) process { return m.Srun }
	for _, a := range []memoryAim{
		{"slurmstepd: private memory, against plain", "plain", stepd, private, 50, "<= +50 kB"},
		{"slurmstepd: locked by memlock_all, against plain", "plain", stepd, func(p process) float64 { return p.Size }, 1024, "<= +1024 kB"},
		{"srun: private memory, against noop", "noop", srun, private, 20, "<= +20 kB (unchanged but for its spread)"},
		{"srun: threads, against plain", "plain", srun, func(p process) float64 { return p.Threads }, 0, "unchanged"},
		{"A/A: private memory of slurmstepd", "plain", stepd, private, math.Inf(1), "-"},
		{"A/A: private memory of srun", "plain", srun, private, math.Inf(1), "-"},
	} {
		r.judgeMemory(a)
	}
}

// memoryAim is what a process of gojail's step may have more than another's.
type memoryAim struct {
	about, base string
	process     func(memory) process
	figure      func(process) float64
	most        float64
	aim         string
}

func (r *report) judgeMemory(a memoryAim) {
	subject := "gojail"
	if math.IsInf(a.most, 1) {
		subject = "plain2"
	}
	of, found := r.Memory[subject]
	base, also := r.Memory[a.base]
	verdict := judged{a.about, estimate{}, a.aim, missing}
	if found && also {
		d := a.figure(a.process(of)) - a.figure(a.process(base))
		verdict.Figure = estimate{d, d, d, looks}
		verdict.Verdict = formatVerdict(verdict.Figure, a.most)
	}
	if math.IsInf(a.most, 1) {
		verdict.Verdict = "-"
	}
	r.Verdicts = append(r.Verdicts, verdict)
}

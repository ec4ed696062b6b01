// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/tests/harness"
)

// mode is a way to launch.
type mode struct {
	name   string
	about  string
	rounds int      // by default
	srun   []string // options
}

func listModes() []mode {
	return []mode{
		{"first", "the first step of a job: srun --jobid in a fresh allocation; job_epilog is outside", 40, []string{"-n1"}},
		{"job", "a job of its own: srun alone; CPU with the end of the job, job_epilog too", 40, []string{"-n1"}},
		{"later", "later steps: srun --jobid in an allocation that had steps before", 40, []string{"-n1"}},
		{"batch", "the same while the job's batch script runs: its cgroups stay from step to step", 40, []string{"-n1"}},
		{"n64", "64 tasks: srun -n64 --overcommit in the same allocation", 40, []string{"-n64", "--overcommit"}},
	}
}

// samples are a candidate's launches in one mode by round, in milliseconds; NaN
// where one failed.
type samples struct {
	Wall []float64 `json:"wall_ms"`
	CPU  []float64 `json:"node_cpu_ms"` // of the candidate's cgroup
	Srun []float64 `json:"srun_cpu_ms"` // of srun itself
}

// measured is all launches of one mode.
type measured struct {
	Mode     string              `json:"mode"`
	Rounds   int                 `json:"rounds"`
	Load     string              `json:"load"` // at its start
	Seconds  float64             `json:"seconds"`
	Failed   []string            `json:"failed"`
	Queued   int                 `json:"queued"`
	Samples  map[string]*samples `json:"samples"`
	allocate map[string]string   // the job of each candidate, where the mode has lasting ones
	atRest   int                 // processes of each node's slurmd and steps between launches
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// measure runs one mode: rounds of one launch per candidate, in random order.
func (m *machine) measure(ctx context.Context, of mode, rounds int, random *rand.Rand) (*measured, error) {
	result := &measured{Mode: of.name, Rounds: rounds, Load: readLoad(), Samples: map[string]*samples{}, atRest: 1}
	begin := time.Now()
	for _, c := range m.chosen {
		result.Samples[c.name] = &samples{}
	}
	if slices.Contains([]string{"later", "batch", "n64"}, of.name) {
		if err := m.startJobs(of, result); err != nil {
			return nil, err
		}
		defer m.endJobs(result)
	}
	for range rounds {
		for _, i := range random.Perm(len(m.chosen)) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			c := m.chosen[i]
			if err := m.launch(of, c, result); err != nil {
				return nil, fmt.Errorf("bench: mode %s, %s: %w", of.name, c.name, err)
			}
		}
	}
	result.Seconds = time.Since(begin).Seconds()
	return result, nil
}

// launch makes one launch and records it. An error ends the bench; a launch that
// fails is a NaN and a line in the report.
func (m *machine) launch(of mode, c candidate, result *measured) error {
	options := of.srun
	job := result.allocate[c.name]
	if of.name == "first" {
		var err error
		if job, err = m.startJob(c, result); err != nil {
			return err
		}
	}
	if job != "" {
		options = append([]string{"--jobid=" + job}, options...)
	}
	g := m.groups[c.name]
	before, err := g.waitUntilIdle(result.atRest)
	if err != nil {
		return err
	}
	r, err := m.watch.runCommand(c.formatSrun(options, "true")...)
	if err != nil {
		return err
	}
	if of.name == "job" {
		if err := m.waitForNoJob(c); err != nil {
			return err
		}
	}
	after, err := g.waitUntilIdle(result.atRest)
	if err != nil {
		return err
	}
	s := result.Samples[c.name]
	wall, cpu, srun := milliseconds(r.wall), milliseconds(after-before), milliseconds(r.cpu)
	result.countFailure(c, r)
	if r.hasFailed() {
		wall, cpu, srun = math.NaN(), math.NaN(), math.NaN()
	}
	s.Wall, s.CPU, s.Srun = append(s.Wall, wall), append(s.CPU, cpu), append(s.Srun, srun)
	if of.name == "first" {
		return m.endJob(c, job)
	}
	return nil
}

// hasFailed reports whether a launch failed: srun's status is 0 after some failures.
func (t timed) hasFailed() bool { return t.code != 0 || strings.Contains(t.stderr, "error") }

// countFailure records a launch that failed, or that had to wait for its node.
func (m *measured) countFailure(c candidate, t timed) {
	if t.hasFailed() {
		m.Failed = append(m.Failed, c.name+": "+strings.Join(strings.Fields(t.String()), " "))
	}
	if strings.Contains(t.stderr, "queued") || strings.Contains(t.stderr, "busy") {
		m.Queued++
	}
}

var granted = regexp.MustCompile(`Granted job allocation (\d+)`)

// startJob starts a job without a step on the candidate's node.
func (m *machine) startJob(c candidate, result *measured) (string, error) {
	r, err := m.watch.runCommand("SLURM_CONF="+c.confPath(), "salloc", "--no-shell", "-w", c.name, "-n", "8")
	if err != nil {
		return "", err
	}
	result.countFailure(c, r)
	found := granted.FindStringSubmatch(r.stderr)
	if r.code != 0 || found == nil {
		return "", fmt.Errorf("salloc: %s", r)
	}
	return found[1], nil
}

// script is a job's batch script while steps are measured, and withScript the processes that a node has with it:
// slurmd, the script's slurmstepd, the script.
const (
	script     = "exec sleep 1d"
	withScript = 3
)

// submitJob submits a job with a batch script on the candidate's node.
func (m *machine) submitJob(c candidate) (string, error) {
	words := []string{"SLURM_CONF=" + c.confPath(), "sbatch", "--parsable", "-w", c.name, "-n", "8", "-o", "/dev/null", "--wrap=" + script}
	r, err := m.watch.runCommand(append(words, c.options...)...)
	if err != nil || r.code != 0 {
		return "", fmt.Errorf("sbatch: %s %w", r, err)
	}
	if !harness.Poll(harness.Timeout, func() bool { return len(m.groups[c.name].listPids(true)) == withScript }) {
		return "", errors.New("its batch script does not run")
	}
	return strings.TrimSpace(r.stdout), nil
}

// endJob ends a job and waits until its node is free.
func (m *machine) endJob(c candidate, job string) error {
	if r, err := m.watch.runCommand("scancel", job); err != nil || r.code != 0 {
		return fmt.Errorf("scancel %s: %s %w", job, r, err)
	}
	return m.waitForNoJob(c)
}

// startJobs starts a job for each candidate, and runs its first step.
func (m *machine) startJobs(of mode, result *measured) error {
	result.allocate = map[string]string{}
	for _, c := range m.chosen {
		var job string
		var err error
		if of.name == "batch" {
			result.atRest = withScript
			job, err = m.submitJob(c)
		} else {
			job, err = m.startJob(c, result)
		}
		if err != nil {
			return fmt.Errorf("bench: %s: %w", c.name, err)
		}
		result.allocate[c.name] = job
		r, err := m.watch.runCommand(c.formatSrun([]string{"--jobid=" + job, "-n1"}, "true")...)
		if err != nil || r.hasFailed() {
			return fmt.Errorf("bench: %s: the first step: %s %w", c.name, r, err)
		}
	}
	return nil
}

func (m *machine) endJobs(result *measured) {
	for _, c := range m.chosen {
		if job := result.allocate[c.name]; job != "" {
			if err := m.endJob(c, job); err != nil {
				result.Failed = append(result.Failed, err.Error())
			}
		}
	}
}

// waitForNoJob waits until Slurm has finished the end of the job.
func (m *machine) waitForNoJob(c candidate) error {
	var r timed
	var err error
	if !harness.Poll(15*time.Second, func() bool {
		r, err = m.watch.runCommand("squeue", "-h", "-w", c.name)
		return err != nil || r.code == 0 && strings.TrimSpace(r.stdout) == ""
	}) {
		return fmt.Errorf("its job does not end: %s", r)
	}
	return err
}

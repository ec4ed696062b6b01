// SPDX-License-Identifier: Apache-2.0

// Package poll asks Slurm once per interval, whatever the number of those who want to know, and keeps what it said and
// how old that is.
package poll

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/gojail/gojail/internal/slurm"
)

// Names of the sources, each a command of Slurm.
const (
	Ping  = "ping"  // scontrol ping
	Nodes = "nodes" // scontrol show nodes
	Jobs  = "jobs"  // squeue
	Diag  = "diag"  // sdiag
)

// Sources are all of them.
var Sources = []string{Ping, Nodes, Jobs, Diag}

// Reasons why a source fails.
const (
	Timeout = "timeout" // no answer in time
	Command = "command" // the command failed: slurmctld is away, or refuses
	Output  = "output"  // what it printed cannot be parsed
)

// Reasons are all of them.
var Reasons = []string{Timeout, Command, Output}

// Slurm is what is asked.
type Slurm interface {
	FindRelease(context.Context) error
	Ping(context.Context) ([]slurm.Controller, error)
	Nodes(context.Context) (*slurm.Nodes, error)
	Jobs(context.Context) (*slurm.Jobs, error)
	Diag(context.Context) (*slurm.Diag, error)
}

// Source is what is known of a source.
type Source struct {
	Runs     int
	Failures map[string]int // by reason
	Odd      int            // records and values that could not be read
	Failing  bool           // whether the last run failed
	Took     time.Duration  // the last run
	At       time.Time      // when the last run began that succeeded; zero: none

	isOdd bool // whether the last answer had records that could not be read
}

// View is what is known at a time. Its contents are never changed.
type View struct {
	Active      bool // whether this host looks at the cluster, and is not the one of a standby controller
	Up          bool // whether slurmctld answered the last time
	Asked       bool // whether it was asked at all
	Controllers []slurm.Controller
	Nodes       *slurm.Nodes
	Jobs        *slurm.Jobs
	Diag        *slurm.Diag
	Sources     map[string]Source
}

// Poller asks Slurm.
type Poller struct {
	Slurm  Slurm
	Host   string // of this machine, as in SlurmctldHost
	MaxAge time.Duration
	Log    *slog.Logger
	Now    func() time.Time

	mutex sync.Mutex
	view  View
	turn  int // number of the interval
}

// commandsMost is the limit of the commands of one interval that ask slurmctld.
const commandsMost = 3

// Run asks Slurm at once and then once per interval, until ctx ends. An interval that takes longer delays the next one.
func (p *Poller) Run(ctx context.Context, interval time.Duration) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		p.Poll(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// Poll asks Slurm once. Nodes and jobs are asked for each time. Where the cluster has several controllers, or none
// answered the last time, ping comes first and takes turns with the statistics, so that there are never more than
// three commands. On the host of a standby controller, and where no controller answers, ping is the only one.
func (p *Poller) Poll(ctx context.Context) {
	p.turn++
	before := p.View()
	next := before
	next.Sources = map[string]Source{}
	for _, name := range Sources {
		next.Sources[name] = before.Sources[name]
	}
	defer func() {
		if ctx.Err() == nil {
			p.publish(next)
		}
	}()
	if err := p.Slurm.FindRelease(ctx); err != nil && p.turn == 1 {
		p.Log.Warn("cannot find out the release of Slurm's commands", "error", err)
	}
	next.Asked = true
	left := commandsMost
	alone := len(before.Controllers) == 1
	if !before.Active || !before.Up || !alone && p.turn%2 == 1 {
		left--
		controllers, err := ask(ctx, p, next.Sources, Ping, p.Slurm.Ping)
		if err == nil {
			next.Controllers = controllers
		}
		next.Active = slurm.IsActive(next.Controllers, p.Host)
		next.Up = err == nil && anyUp(controllers)
		if !next.Active || !next.Up {
			return
		}
	}
	var nodesErr, jobsErr, diagErr error
	if next.Nodes, nodesErr = ask(ctx, p, next.Sources, Nodes, p.Slurm.Nodes); nodesErr != nil {
		next.Nodes = before.Nodes
	} else {
		p.noteOdd(next.Sources, Nodes, next.Nodes.Odd)
	}
	if next.Jobs, jobsErr = ask(ctx, p, next.Sources, Jobs, p.Slurm.Jobs); jobsErr != nil {
		next.Jobs = before.Jobs
	} else {
		p.noteOdd(next.Sources, Jobs, next.Jobs.Odd)
	}
	if left == commandsMost {
		if next.Diag, diagErr = ask(ctx, p, next.Sources, Diag, p.Slurm.Diag); diagErr != nil {
			next.Diag = before.Diag
		} else {
			p.noteOdd(next.Sources, Diag, next.Diag.Odd)
		}
	}
	next.Up = hasAnswered(nodesErr) || hasAnswered(jobsErr) || left == commandsMost && hasAnswered(diagErr)
}

func anyUp(list []slurm.Controller) bool {
	for _, c := range list {
		if c.Up {
			return true
		}
	}
	return false
}

// hasAnswered reports whether slurmctld gave an answer, even if it cannot be parsed.
func hasAnswered(err error) bool {
	var unread *slurm.ReadError
	return err == nil || errors.As(err, &unread)
}

// ask runs a command and notes what became of it.
func ask[T any](ctx context.Context, p *Poller, sources map[string]Source, name string,
	run func(context.Context) (T, error)) (T, error) {
	begin := p.Now()
	result, err := run(ctx)
	s := sources[name]
	s.Runs++
	s.Took = p.Now().Sub(begin)
	failures := map[string]int{}
	for reason, count := range s.Failures {
		failures[reason] = count
	}
	s.Failures = failures
	if err == nil {
		if s.Failing {
			p.Log.Info("Slurm answers again", "source", name)
		}
		s.At = begin
	} else {
		s.Failures[reasonOf(err)]++
		if !s.Failing && ctx.Err() == nil {
			p.Log.Warn("Slurm does not answer", "source", name, "error", err)
		}
	}
	s.Failing = err != nil
	sources[name] = s
	return result, err
}

// noteOdd counts what could not be read of an answer, and tells of the first such answer of a source.
func (p *Poller) noteOdd(sources map[string]Source, name string, odd slurm.Odd) {
	s := sources[name]
	if odd.Count > 0 && !s.isOdd {
		p.Log.Warn("a record of Slurm cannot be read and has no series", "source", name, "records", odd.Count, "first",
			odd.First)
	}
	s.Odd += odd.Count
	s.isOdd = odd.Count > 0
	sources[name] = s
}

func reasonOf(err error) string {
	var unread *slurm.ReadError
	var late *slurm.TimeoutError
	switch {
	case errors.As(err, &unread):
		return Output
	case errors.As(err, &late):
		return Timeout
	}
	return Command
}

func (p *Poller) publish(v View) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if v.Active != p.view.Active && p.turn > 1 {
		p.Log.Info("the controller of this host has changed its role", "active", v.Active)
	}
	p.view = v
}

// View returns what is known. What is older than MaxAge is not in it.
func (p *Poller) View() View {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	v := p.view
	now := p.Now()
	if !p.isFresh(v, Nodes, now) {
		v.Nodes = nil
	}
	if !p.isFresh(v, Jobs, now) {
		v.Jobs = nil
	}
	if !p.isFresh(v, Diag, now) {
		v.Diag = nil
	}
	return v
}

// isFresh reports whether what a source said can be shown. A standby shows nothing.
func (p *Poller) isFresh(v View, source string, now time.Time) bool {
	at := v.Sources[source].At
	return v.Active && !at.IsZero() && now.Sub(at) <= p.MaxAge
}

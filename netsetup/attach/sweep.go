// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/pool"
)

// Sweep puts right what others left: it releases jobs that are not alive, tries
// quarantined VFs again, frees addresses of jobs that are gone, and tells UFM what
// it has missed. The journals of another boot are dropped, since the VFs are new;
// their addresses and partitions are freed. alive is asked while the job's lock is
// held: a job that is being attached at this moment is left alone.
func Sweep(ctx context.Context, site Site, alive func(job string) bool) (*Swept, error) {
	state := store(site.State)
	if err := state.prepare(); err != nil {
		return nil, err
	}
	swept := &Swept{Released: []string{}, Addresses: []string{}, Kept: []Kept{}}
	entries, bad, err := state.entries()
	if err != nil {
		return nil, err
	}
	for pci, why := range bad {
		swept.Kept = append(swept.Kept, Kept{PCI: pci, Why: why})
	}
	jobs, err := state.list("jobs")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		jobs = append(jobs, e.Job)
	}
	slices.Sort(jobs)
	for _, job := range slices.Compact(jobs) {
		swept.job(ctx, site, job, alive)
	}
	swept.leases(ctx, site, alive)
	swept.partitions(ctx, site)
	swept.problem(state.withNode(ctx, state.tidy))
	slices.SortFunc(swept.Kept, func(a, b Kept) int { return cmp.Or(cmp.Compare(a.PCI, b.PCI), cmp.Compare(a.Job, b.Job)) })
	return swept, nil
}

func (w *Swept) problem(err error) {
	if err != nil {
		w.Problems = append(w.Problems, oneline.Text(err.Error()))
	}
}

// job releases a job that is not alive. Of one that is, it releases what is of
// another boot and tries again what is in quarantine.
func (w *Swept) job(ctx context.Context, site Site, job string, alive func(job string) bool) {
	now, cancel := context.WithTimeout(ctx, 0)
	s, err := begin(now, &site, job)
	cancel()
	if errors.Is(err, filelock.ErrBusy) {
		w.Kept = append(w.Kept, Kept{Job: job, Why: "it is being attached or released at this moment"})
		return
	}
	if err != nil {
		w.problem(err)
		return
	}
	defer s.close()
	living := alive(job)
	ctx, cancel = context.WithTimeout(ctx, site.sweepTime())
	defer cancel()
	if living {
		err = s.releaseStale(ctx)
	} else if err = s.releaseAll(ctx); err == nil {
		w.Released = append(w.Released, job)
	}
	w.problem(err)
	left, err := s.state.of(job)
	w.problem(err)
	for _, e := range left {
		why := "the job is alive"
		if e.Quarantined != "" {
			why = "quarantine: " + e.Quarantined
		}
		w.Kept = append(w.Kept, Kept{PCI: e.PCI, Job: job, Why: why})
	}
}

func (s *session) releaseStale(ctx context.Context) error {
	rec, err := s.state.record(s.job)
	if err != nil {
		return err
	}
	if rec != nil && rec.Boot != s.boot {
		return s.releaseAll(ctx)
	}
	entries, err := s.state.of(s.job)
	if err != nil {
		return err
	}
	stale := slices.DeleteFunc(entries, func(e *entry) bool { return e.Quarantined == "" && e.Boot == s.boot })
	return s.back(ctx, stale)
}

// leases frees addresses whose jobs neither live nor have a journal.
func (w *Swept) leases(ctx context.Context, site Site, alive func(job string) bool) {
	if site.Config == nil {
		return
	}
	state := store(site.State)
	mine := func(o pool.Owner) bool {
		if o.Cluster != site.Cluster || alive(o.Job) || w.keeps(o.Job) {
			return true
		}
		_, err := os.Lstat(state.job(o.Job)) // it has begun meanwhile
		return err == nil
	}
	for _, p := range site.Config.Pools {
		if p.Directory == "" {
			continue
		}
		w.problem(w.pool(ctx, site, p, mine))
	}
}

func (w *Swept) pool(ctx context.Context, site Site, p *config.Pool, mine func(pool.Owner) bool) error {
	ctx, cancel := context.WithTimeout(ctx, site.sweepTime())
	defer cancel()
	opened, err := site.pool(ctx, p)
	if err != nil {
		return err
	}
	freed, err := opened.Sweep(ctx, mine)
	for _, l := range freed {
		w.Addresses = append(w.Addresses, fmt.Sprintf("%s of %s", l.Addr, l.Owner))
	}
	return err
}

func (w *Swept) keeps(job string) bool {
	return slices.ContainsFunc(w.Kept, func(k Kept) bool { return k.Job == job })
}

// partitions tells UFM what it has missed.
func (w *Swept) partitions(ctx context.Context, site Site) {
	if site.Config == nil || site.Config.UFM == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, site.sweepTime())
	defer cancel()
	queue, client, err := site.ufm()
	if err == nil {
		_, err = queue.Replay(ctx, client)
	}
	w.problem(err)
}

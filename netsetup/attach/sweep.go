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

// Sweep cleans up after killed processes: it releases jobs that are not alive, tries again to restore quarantined VFs,
// releases addresses of jobs that have ended, and sends queued calls to UFM. It drops the journals of another boot,
// because the VFs of that boot no longer exist, and releases their addresses and partitions. It calls alive while it
// holds the job's lock, so that the job cannot begin between the answer and the release; a job that is being attached
// is skipped.
func Sweep(ctx context.Context, site Site, alive func(job string) bool) (*Swept, error) {
	state := store(site.State)
	if err := state.prepare(); err != nil {
		return nil, err
	}
	swept := &Swept{Released: []string{}, Addresses: []string{}, Leftovers: []Leftover{}}
	entries, bad, err := state.readEntries()
	if err != nil {
		return nil, err
	}
	for pci, why := range bad {
		swept.Leftovers = append(swept.Leftovers, Leftover{PCI: pci, Why: why})
	}
	jobs, err := state.listJournals("jobs")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		jobs = append(jobs, e.Job)
	}
	slices.Sort(jobs)
	for _, job := range slices.Compact(jobs) {
		swept.sweepJob(ctx, site, job, alive)
	}
	// After the jobs, because addresses of jobs with leftovers stay leased.
	swept.sweepLeases(ctx, site, alive)
	swept.replayPartitions(ctx, site)
	swept.addProblem(state.withNodeLock(ctx, state.removeStrays))
	slices.SortFunc(swept.Leftovers,
		func(a, b Leftover) int { return cmp.Or(cmp.Compare(a.PCI, b.PCI), cmp.Compare(a.Job, b.Job)) })
	return swept, nil
}

func (s *Swept) addProblem(err error) {
	if err != nil {
		s.Problems = append(s.Problems, oneline.Text(err.Error()))
	}
}

// sweepJob releases a job that is not alive. If the job is alive, sweepJob releases its VFs of another boot and tries
// again to restore its VFs in quarantine. It does not wait for the job's lock: who holds it is attaching or releasing
// the job.
func (s *Swept) sweepJob(ctx context.Context, site Site, job string, alive func(job string) bool) {
	now, cancel := context.WithTimeout(ctx, 0)
	open, err := beginSession(now, &site, job)
	cancel()
	if errors.Is(err, filelock.ErrBusy) {
		s.Leftovers = append(s.Leftovers, Leftover{Job: job, Why: "it is being attached or released now"})
		return
	}
	if err != nil {
		s.addProblem(err)
		return
	}
	defer open.close()
	living := alive(job)
	ctx, cancel = context.WithTimeout(ctx, site.sweepTimeout())
	defer cancel()
	if living {
		err = open.releaseStale(ctx)
	} else if err = open.releaseAll(ctx); err == nil {
		s.Released = append(s.Released, job)
	}
	s.addProblem(err)
	left, err := open.state.readEntriesOf(job)
	s.addProblem(err)
	for _, e := range left {
		why := "the job is alive"
		if e.Quarantined != "" {
			why = "quarantine: " + e.Quarantined
		}
		s.Leftovers = append(s.Leftovers, Leftover{PCI: e.PCI, Job: job, Why: why})
	}
}

// releaseStale releases what a living job has of an earlier boot, for example from before it was requeued, and tries
// again to restore its VFs in quarantine.
func (s *session) releaseStale(ctx context.Context) error {
	rec, err := s.state.readRecord(s.job)
	if err != nil {
		return err
	}
	if rec != nil && rec.Boot != s.boot {
		return s.releaseAll(ctx)
	}
	entries, err := s.state.readEntriesOf(s.job)
	if err != nil {
		return err
	}
	stale := slices.DeleteFunc(entries, func(e *entry) bool { return e.Quarantined == "" && e.Boot == s.boot })
	return s.undoRails(ctx, stale)
}

// sweepLeases releases addresses whose jobs are not alive and have no journal. Only shared pools need it: a derived
// address is not recorded anywhere but in the journal.
func (s *Swept) sweepLeases(ctx context.Context, site Site, alive func(job string) bool) {
	if site.Config == nil {
		return
	}
	state := store(site.State)
	inUse := func(o pool.Owner) bool {
		// Clusters may share a pool, and alive knows the jobs of this one only.
		if o.Cluster != site.Cluster || alive(o.Job) || s.hasLeftover(o.Job) {
			return true
		}
		_, err := os.Lstat(state.jobPath(o.Job)) // it exists if the job has begun meanwhile
		return err == nil
	}
	for _, p := range site.Config.Pools {
		if p.Directory == "" {
			continue
		}
		s.addProblem(s.sweepPool(ctx, site, p, inUse))
	}
}

// sweepPool sweeps one pool, with a timeout of its own: a file server that hangs must not delay the other pools.
func (s *Swept) sweepPool(ctx context.Context, site Site, p *config.Pool, alive func(pool.Owner) bool) error {
	ctx, cancel := context.WithTimeout(ctx, site.sweepTimeout())
	defer cancel()
	opened, err := site.openPool(ctx, p)
	if err != nil {
		return err
	}
	freed, err := opened.Sweep(ctx, alive)
	for _, l := range freed {
		s.Addresses = append(s.Addresses, fmt.Sprintf("%s of %s", l.Addr, l.Owner))
	}
	return err
}

// hasLeftover reports whether a job still has something on this node. Its addresses then stay leased.
func (s *Swept) hasLeftover(job string) bool {
	return slices.ContainsFunc(s.Leftovers, func(k Leftover) bool { return k.Job == job })
}

// replayPartitions sends the queued calls to UFM, in which a VF may still be a member of an ended job's partition.
func (s *Swept) replayPartitions(ctx context.Context, site Site) {
	if site.Config == nil || site.Config.UFM == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, site.sweepTimeout())
	defer cancel()
	queue, client, err := site.openUFM()
	if err == nil {
		_, err = queue.Replay(ctx, client)
	}
	s.addProblem(err)
}

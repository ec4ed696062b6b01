// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/link"
)

// Release takes back everything that a job has. It may be repeated; that a job has nothing is no error. It continues
// after errors; a VF that could not be restored is then in quarantine.
func Release(ctx context.Context, site Site, job string) error {
	s, err := beginSession(ctx, &site, job)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.releaseAll(ctx); err != nil {
		return oneline.Error(fmt.Errorf("release job %s: %w", job, err))
	}
	return nil
}

// releaseAll undoes everything that the job's journals record. The record of the job is removed last, and only if the
// control interface is gone: it is the only record of that interface and its address.
func (s *session) releaseAll(ctx context.Context) error {
	entries, err := s.state.readEntriesOf(s.job)
	if err != nil {
		return err
	}
	rec, recordErr := s.state.readRecord(s.job)
	err = errors.Join(recordErr, s.undoRails(ctx, entries))
	if controlErr := s.removeControl(ctx, rec); controlErr != nil {
		return errors.Join(err, controlErr)
	}
	if rec != nil {
		err = errors.Join(err, removeJournal(s.state.jobPath(s.job)))
	}
	return err
}

// undoRails undoes the steps of VFs, in parallel. It looks for no namespace of another boot, which no longer exists,
// and for none if the VF is already back: that search reads all of /proc.
func (s *session) undoRails(ctx context.Context, entries []*entry) error {
	spaces := map[uint64]*link.Namespace{}
	var rails []*rail
	for _, e := range entries {
		r := &rail{site: s.site, state: s.state, boot: s.boot, host: s.host, entry: e}
		if e.Boot == s.boot && !r.isHome() {
			if _, ok := spaces[e.Netns]; !ok {
				spaces[e.Netns] = s.findNamespace(e.Netns)
			}
			r.job = spaces[e.Netns]
		}
		rails = append(rails, r)
	}
	return s.forEachRail(rails, func(r *rail) error { return r.undoSteps(ctx) })
}

// isHome reports whether the VF and its RDMA device are in the node's namespace, so that the job's namespace is not
// needed.
func (r *rail) isHome() bool {
	if r.entry.hasInterface() {
		if _, err := r.site.hardware.find(r.host, r.entry.PCI); err != nil {
			return false
		}
	}
	if r.entry.RDMA != config.RDMAExclusive {
		return true
	}
	home, err := r.hasAllRDMA()
	return home && err == nil
}

// releaseLeftovers releases what the job still has from before. A VF in quarantine is no obstacle, because the job gets
// another one, unless that VF may still answer for the job's address.
func (s *session) releaseLeftovers(ctx context.Context) error {
	releaseErr := s.releaseAll(ctx)
	if releaseErr == nil {
		return nil
	}
	left, err := s.state.readEntriesOf(s.job)
	rec, recordErr := s.state.readRecord(s.job)
	if err != nil || recordErr != nil || rec != nil {
		return releaseErr
	}
	for _, e := range left {
		if len(e.Pools) > 0 || e.Quarantined == "" {
			return releaseErr
		}
	}
	return nil
}

// findNamespace returns the job's namespace: that of the session, or else the namespace with that inode number. It
// returns nil if the namespace is gone.
func (s *session) findNamespace(number uint64) *link.Namespace {
	if s.space != nil && s.netns == number {
		return s.space
	}
	fd := openNamespace(s.site.Roots.Proc, number)
	if fd < 0 {
		return nil
	}
	defer unix.Close(fd)
	ns, err := link.Open(fd)
	if err != nil {
		return nil
	}
	s.end = append(s.end, ns.Close)
	return ns
}

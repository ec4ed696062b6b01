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

// Release takes back all that a job has, whatever is left of it. It may be
// repeated, and a job that has nothing is no error. All of it is tried although
// some fails; a VF that could not be made what it was is in quarantine then.
func Release(ctx context.Context, site Site, job string) error {
	s, err := begin(ctx, &site, job)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.releaseAll(ctx); err != nil {
		return oneline.Error(fmt.Errorf("release job %s: %w", job, err))
	}
	return nil
}

// releaseAll undoes what the journals know about the job.
func (s *session) releaseAll(ctx context.Context) error {
	entries, err := s.state.of(s.job)
	if err != nil {
		return err
	}
	rec, unreadable := s.state.record(s.job)
	err = errors.Join(unreadable, s.back(ctx, entries))
	if failed := s.removeControl(ctx, rec); failed != nil {
		return errors.Join(err, failed)
	}
	if rec != nil {
		err = errors.Join(err, erase(s.state.job(s.job)))
	}
	return err
}

// back undoes the steps of VFs.
func (s *session) back(ctx context.Context, entries []*entry) error {
	spaces := map[uint64]*link.Namespace{}
	var rails []*rail
	for _, e := range entries {
		r := &rail{site: s.site, state: s.state, boot: s.boot, host: s.host, entry: e}
		if e.Boot == s.boot && !r.allHome() {
			if _, ok := spaces[e.Netns]; !ok {
				spaces[e.Netns] = s.namespace(e.Netns)
			}
			r.job = spaces[e.Netns]
		}
		rails = append(rails, r)
	}
	return s.each(rails, func(r *rail) error { return r.back(ctx) })
}

// allHome tells whether the job's namespace has nothing of the VF: no need to look for it.
func (r *rail) allHome() bool {
	_, err := r.site.hardware.find(r.host, r.entry.PCI)
	if err == nil && r.entry.RDMA == config.RDMAExclusive {
		_, err = r.site.hardware.findRDMA(r.host, r.entry.PCI)
	}
	return err == nil
}

// releaseBefore releases what is left of the job from before. A VF in quarantine
// is no hindrance, unless it may still answer for the job's address.
func (s *session) releaseBefore(ctx context.Context) error {
	failed := s.releaseAll(ctx)
	if failed == nil {
		return nil
	}
	left, err := s.state.of(s.job)
	rec, unreadable := s.state.record(s.job)
	if err != nil || unreadable != nil || rec != nil {
		return failed
	}
	for _, e := range left {
		if len(e.Pools) > 0 || e.Quarantined == "" {
			return failed
		}
	}
	return nil
}

// namespace finds the job's namespace: the one at hand, or by its number; nil if it is gone.
func (s *session) namespace(number uint64) *link.Namespace {
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

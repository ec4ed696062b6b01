// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gojail/gojail/netsetup/link"
)

// session is one call about one job, with the job's lock.
type session struct {
	site  *Site
	state store
	boot  string
	job   string
	host  *link.Namespace
	space *link.Namespace // the job's; nil in Release
	netns uint64          // its number
	end   []func()
}

func (s *session) close() {
	for i := len(s.end) - 1; i >= 0; i-- {
		s.end[i]()
	}
}

// begin checks names and the state directory, and takes the job's lock.
func begin(ctx context.Context, site *Site, job string) (*session, error) {
	if !isJob(job) {
		return nil, fmt.Errorf("%.70q is no job", job)
	}
	s := &session{site: site, state: store(site.State), job: job}
	site.hardware = site.hardware.complete(site.Roots.Proc)
	if err := s.state.prepare(); err != nil {
		return nil, err
	}
	var err error
	if s.boot, err = bootID(site.Roots.Proc); err != nil {
		return nil, err
	}
	lock, err := s.state.lockJob(ctx, job)
	if err != nil {
		return nil, err
	}
	s.end = append(s.end, func() { lock.Close() })
	if s.host, err = link.Open(site.Host); err != nil {
		s.close()
		return nil, err
	}
	s.end = append(s.end, s.host.Close)
	return s, nil
}

// enter opens the job's namespace.
func (s *session) enter(netns int) (err error) {
	if s.netns, err = inode(netns); err != nil {
		return err
	}
	if s.space, err = link.Open(netns); err != nil {
		return err
	}
	s.end = append(s.end, s.space.Close)
	return nil
}

// each does something for all rails side by side, each with netlink sockets of its own.
func (s *session) each(rails []*rail, do func(*rail) error) error {
	errs := make([]error, len(rails))
	var wait sync.WaitGroup
	for i, r := range rails {
		wait.Go(func() { errs[i] = s.open(r, do) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

func (s *session) open(r *rail, do func(*rail) error) (err error) {
	if r.host, err = link.Open(s.host.FD()); err != nil {
		return err
	}
	defer r.host.Close()
	if r.job != nil {
		if r.job, err = link.Open(r.job.FD()); err != nil {
			return err
		}
		defer r.job.Close()
	}
	return do(r)
}

// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gojail/gojail/internal/procfs"
	"github.com/gojail/gojail/netsetup/link"
)

// session is one operation on one job, during which it holds the job's lock.
type session struct {
	site  *Site
	state store
	boot  string
	job   string
	host  *link.Namespace
	space *link.Namespace // the job's namespace; nil in Release
	netns uint64          // inode number of space
	end   []func()
}

// close releases everything that the session holds, the job's lock last.
func (s *session) close() {
	for i := len(s.end) - 1; i >= 0; i-- {
		s.end[i]()
	}
}

// beginSession checks the job's name and the state directory, and takes the job's lock.
func beginSession(ctx context.Context, site *Site, job string) (*session, error) {
	if !isJobName(job) {
		return nil, fmt.Errorf("%.70q is not a job", job)
	}
	s := &session{site: site, state: store(site.State), job: job}
	site.hardware = site.hardware.withDefaults(site.Roots.Proc)
	if err := s.state.prepare(); err != nil {
		return nil, err
	}
	var err error
	if s.boot, err = procfs.ReadBootID(site.Roots.Proc); err != nil {
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

// enterNamespace opens the job's namespace.
func (s *session) enterNamespace(netns int) (err error) {
	if s.netns, err = readInode(netns); err != nil {
		return err
	}
	if s.space, err = link.Open(netns); err != nil {
		return err
	}
	s.end = append(s.end, s.space.Close)
	return nil
}

// forEachRail calls do for all rails in parallel, each with its own netlink sockets: requests on one socket would wait
// for each other.
func (s *session) forEachRail(rails []*rail, do func(*rail) error) error {
	errs := make([]error, len(rails))
	var wait sync.WaitGroup
	for i, r := range rails {
		wait.Go(func() { errs[i] = s.openRail(r, do) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// openRail calls do for a rail with sockets of its own, which it closes again.
func (s *session) openRail(r *rail, do func(*rail) error) (err error) {
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

// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/policy"
	"github.com/gojail/gojail/netsetup/provision"
)

// undoTime is how long an attach that failed may take to undo what it did, also
// when the caller's own time is over.
const undoTime = 30 * time.Second

// Attach gives a job its VFs, and returns when all of them are ready to be used.
// A job that has them already, in the same namespace, gets the same answer again;
// what is left of one whose namespace is another is released first. After an error
// all is as before; what could not be undone is in quarantine.
func Attach(ctx context.Context, site Site, j Job) (*Network, error) {
	s, err := begin(ctx, &site, j.ID)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if site.Config == nil {
		return nil, errors.New("there is no configuration of networks; write network.toml")
	}
	if err := s.enter(j.Netns); err != nil {
		return nil, err
	}
	known, err := s.state.record(j.ID)
	if err != nil {
		return nil, err
	}
	if s.complete(known) {
		if known.Label != j.Label {
			return nil, fmt.Errorf("job %s has the network %q in this namespace already and cannot have %q, too", j.ID, known.Label, j.Label)
		}
		return known.Network, nil
	}
	if err := s.releaseBefore(ctx); err != nil {
		return nil, oneline.Error(fmt.Errorf("job %s: what it had before is not released: %w", j.ID, err))
	}
	network, err := s.attach(ctx, j)
	if err == nil {
		return network, nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	return nil, oneline.Error(fmt.Errorf("job %s: %w", j.ID, errors.Join(err, s.releaseAll(undo))))
}

// complete tells whether the job has its network, in the session's namespace: numbers
// of namespaces are used again, so its VFs must be there.
func (s *session) complete(known *record) bool {
	if known == nil || known.Network == nil || known.Netns != s.netns || known.Boot != s.boot {
		return false
	}
	for _, r := range known.Network.Rails {
		if _, err := s.site.hardware.find(s.space, r.PCI); err != nil {
			return false
		}
	}
	return true
}

func (s *session) attach(ctx context.Context, j Job) (*Network, error) {
	rec, rails, err := s.reserve(ctx, j)
	if err != nil {
		return nil, err
	}
	if err := s.likeTheNode(); err != nil {
		return nil, err
	}
	if err := s.together(ctx, rec, rails); err != nil {
		return nil, err
	}
	rec.Network, err = s.network(rec, rails)
	if err != nil {
		return nil, err
	}
	return rec.Network, write(s.state.job(s.job), rec)
}

var (
	errOther   = errors.New("another rail of the job failed")
	errControl = errors.New("the job's control interface failed")
)

// likeTheNode gives the namespace what programs know of the node: a loopback, and
// who may ping without privilege, which is nobody in a new one (icmp(7)).
func (s *session) likeTheNode() error {
	const ping = "ipv4/ping_group_range"
	lo, err := s.space.ByName("lo")
	if err != nil {
		return err
	}
	if err := s.space.Up(lo.Index); err != nil {
		return err
	}
	groups, err := s.host.Sysctl(s.site.Roots.Proc, ping)
	if err != nil {
		return err
	}
	_, err = s.space.SetSysctls(s.site.Roots.Proc, []link.Sysctl{{Name: ping, Value: groups}})
	return err
}

// together makes the control interface while the rails go through their steps, since
// each asks its network about addresses, which takes time. What fails first ends the
// others, and its error is the one that counts.
func (s *session) together(ctx context.Context, rec *record, rails []*rail) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	control := make(chan error, 1)
	go func() {
		err := s.addControl(ctx, rec)
		if err != nil {
			cancel(errControl)
		}
		control <- err
	}()
	err := s.forward(ctx, rails)
	if err != nil {
		cancel(errOther)
	}
	failed := <-control
	if err == nil || failed != nil && context.Cause(ctx) == errControl {
		return failed
	}
	return err
}

// forward takes all rails through their steps. The first that fails ends the
// others, and its error is the one that counts.
func (s *session) forward(ctx context.Context, rails []*rail) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var once sync.Once
	var first error
	err := s.each(rails, func(r *rail) error {
		if err := r.forward(ctx); err != nil {
			once.Do(func() { first = err; cancel(errOther) })
		}
		return nil
	})
	return errors.Join(err, first)
}

// reserve chooses VFs and writes their journals, with the node's lock.
func (s *session) reserve(ctx context.Context, j Job) (*record, []*rail, error) {
	lock, err := s.state.lockNode(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer lock.Close()
	chosen, err := s.choose(j)
	if err != nil {
		return nil, nil, err
	}
	rec := &record{Boot: s.boot, Job: s.job, Netns: s.netns, Label: j.Label}
	if rec.Control, err = s.planControl(); err != nil {
		return nil, nil, err
	}
	if err := write(s.state.job(s.job), rec); err != nil {
		return nil, nil, err
	}
	var rails []*rail
	for _, c := range chosen {
		r := s.rail(c)
		if err := r.observe(); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", r.entry, err)
		}
		if err := r.note(); err != nil {
			return nil, nil, err
		}
		rails = append(rails, r)
	}
	return rec, rails, s.site.onStep("", "reserve", true)
}

func (s *session) choose(j Job) ([]choice, error) {
	rails := s.site.Config.DefaultRails()
	if j.Label != "" {
		var err error
		if rails, err = s.site.Config.Labelled(j.Label); err != nil {
			return nil, err
		}
	}
	inv, err := inventory.Read(s.site.Roots)
	if err != nil {
		return nil, err
	}
	if err := provision.AltNames(inv, s.host); err != nil {
		return nil, err
	}
	cards, _, err := policy.Cards(s.site.Config, inv)
	if err != nil {
		return nil, err
	}
	held, quarantined, err := Held(string(s.state))
	if err != nil {
		return nil, err
	}
	for pci, job := range held {
		held[pci] = "job " + job
	}
	for pci := range quarantined {
		held[pci] = "in quarantine"
	}
	var gpus []*inventory.GPU
	for _, gpu := range inv.GPUs {
		if slices.Contains(j.GPUs, gpu.PCI) {
			gpus = append(gpus, gpu)
		}
	}
	return choose(rails, cards, j, gpus, held)
}

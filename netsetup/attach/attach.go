// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/policy"
	"github.com/gojail/gojail/netsetup/provision"
)

// undoTime is how long an attach that failed may take to undo what it did, also
// when the caller's own time is over.
const undoTime = 30 * time.Second

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
	if !jobRule.MatchString(job) {
		return nil, fmt.Errorf("%.70q is no job", job)
	}
	s := &session{site: site, state: store(site.State), job: job}
	site.Hardware = site.Hardware.complete(site.Roots.Proc)
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
	if s.netns, err = inode(j.Netns); err != nil {
		return nil, err
	}
	known, err := s.state.record(j.ID)
	if err != nil {
		return nil, err
	}
	if known != nil && known.Network != nil && known.Netns == s.netns && known.Boot == s.boot {
		return known.Network, nil
	}
	if err := s.releaseBefore(ctx); err != nil {
		return nil, &line{fmt.Errorf("job %s: what it had before is not released: %w", j.ID, err)}
	}
	if s.space, err = link.Open(j.Netns); err != nil {
		return nil, err
	}
	s.end = append(s.end, s.space.Close)
	network, err := s.attach(ctx, j)
	if err == nil {
		return network, nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	return nil, &line{fmt.Errorf("job %s: %w", j.ID, errors.Join(err, s.releaseAll(undo)))}
}

func (s *session) attach(ctx context.Context, j Job) (*Network, error) {
	rec, rails, err := s.reserve(ctx, j)
	if err != nil {
		return nil, err
	}
	if err := s.addControl(ctx, rec); err != nil {
		return nil, err
	}
	if err := s.forward(ctx, rails); err != nil {
		return nil, err
	}
	rec.Network, err = s.network(rec, rails)
	if err != nil {
		return nil, err
	}
	return rec.Network, write(s.state.job(s.job), rec)
}

var errOther = errors.New("another rail of the job failed")

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
	rec := &record{Boot: s.boot, Job: s.job, Netns: s.netns}
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
	return rec, rails, interrupt("", "reserve", true)
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

func (s *session) rail(c choice) *rail {
	e := &entry{
		Boot: s.boot, Job: s.job, Netns: s.netns, Phase: steps[0].name, Rail: c.rail.Name,
		PCI: c.vf.PCI, PF: c.vf.PF.PCI, PFName: c.vf.PF.Name(), VF: c.vf.Number,
		Name: fmt.Sprintf("net%d", c.rail.Index+1), Table: c.rail.Table, Link: config.LinkType(c.vf.Link),
		RDMA: c.rail.Policy.RDMA, PKey: c.rail.PKey, Slot: c.slot, Pools: map[string]netip.Addr{},
	}
	e.UFM = e.Link == config.InfiniBand && s.site.Config.UFM != nil
	for _, p := range c.rail.Pools {
		e.Pools[p.Name] = netip.Addr{}
	}
	return &rail{site: s.site, state: s.state, boot: s.boot, host: s.host, job: s.space, config: c.rail, entry: e}
}

// observe records what a VF is before anything is changed.
func (r *rail) observe() error {
	l, err := r.site.Hardware.Find(r.host, r.entry.PCI)
	if err != nil {
		return err
	}
	pf, err := r.site.Hardware.Find(r.host, r.entry.PF)
	if err != nil {
		return err
	}
	knobs, err := r.site.Hardware.ReadVF(r.host, pf.Index, r.entry.VF)
	if err != nil {
		return err
	}
	r.entry.Original = original{Name: l.Name, AltNames: l.AltNames, MAC: l.MAC, MTU: l.MTU, TxQueue: l.TxQueue, Knobs: knobs}
	if r.entry.RDMA == config.RDMAExclusive || r.entry.RDMA == config.RDMAShared {
		r.entry.Original.RDMA, err = r.site.Hardware.FindRDMA(r.host, r.entry.PCI)
	}
	return err
}

// network is what the job is told, and what `gojail net show` shows.
func (s *session) network(rec *record, rails []*rail) (*Network, error) {
	n := &Network{Job: s.job, Rails: []RailNet{}}
	if rec.Control != nil {
		n.Control = &ControlNet{Name: controlName, Addresses: rec.Control.link("").Addresses}
		if l, err := s.space.DefaultLink(rec.Control.Address.Is6()); err != nil || l.Name != controlName {
			return nil, errors.Join(fmt.Errorf("the default route leads to %q and not to %s; a route of a rail's pool is in its place", l.Name, controlName), err)
		}
	}
	for _, r := range rails {
		one, err := s.railNet(r, n)
		if err != nil {
			return nil, err
		}
		n.Rails = append(n.Rails, one)
	}
	n.Env = environment(n)
	return n, nil
}

func (s *session) railNet(r *rail, n *Network) (RailNet, error) {
	r.host, r.job = s.host, s.space
	l, err := r.site.Hardware.Find(r.job, r.entry.PCI)
	if err != nil {
		return RailNet{}, fmt.Errorf("%s: %w", r.entry, err)
	}
	one := RailNet{
		Rail: r.entry.Rail, Name: l.Name, PCI: r.entry.PCI, PF: r.entry.PFName, VF: r.entry.VF,
		MAC: l.MAC.String(), MTU: l.MTU, Table: r.entry.Table,
	}
	for _, p := range r.config.Pools {
		one.Addresses = append(one.Addresses, r.prefix(p))
		if p.Gateway.IsValid() {
			one.Gateways = append(one.Gateways, p.Gateway)
		}
	}
	name, files, err := r.rdmaOf()
	if err != nil {
		return RailNet{}, err
	}
	one.RDMA = name
	for _, f := range files {
		if !slices.Contains(n.Files, f) {
			n.Files = append(n.Files, f)
		}
	}
	return one, nil
}

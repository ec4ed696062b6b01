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
	"github.com/gojail/gojail/internal/refusal"
	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
	"github.com/gojail/gojail/netsetup/policy"
	"github.com/gojail/gojail/netsetup/provision"
)

// undoTime is the timeout for undoing a failed attach. It is independent of the caller's deadline, which is often the
// reason of the failure and would leave no time to undo anything.
const undoTime = 30 * time.Second

// Attach gives a job its VFs, and returns when all of them are ready for use. If the job already has a network in the
// same namespace, Attach returns that; if it has one in another namespace, for example because its holder died, Attach
// releases that first. After an error everything is as before; VFs that could not be restored are in quarantine.
func Attach(ctx context.Context, site Site, j Job) (*Network, error) {
	s, err := beginSession(ctx, &site, j.ID)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if site.Config == nil {
		return nil, errors.New("this node has no network configuration; write network.toml")
	}
	if err := s.enterNamespace(j.Netns); err != nil {
		return nil, err
	}
	known, err := s.state.readRecord(j.ID)
	if err != nil {
		return nil, err
	}
	if s.isComplete(known) {
		if known.Label != j.Label {
			return nil, refusal.Errorf("job %s already has the network %q in this namespace and cannot have %q as well",
				j.ID, known.Label, j.Label)
		}
		return known.Network, nil
	}
	// A step whose launcher was killed, or a job of the same number before, may have left a network.
	if err := s.releaseLeftovers(ctx); err != nil {
		return nil, oneline.Error(fmt.Errorf("job %s: cannot release its previous network: %w", j.ID, err))
	}
	network, err := s.attach(ctx, j)
	if err == nil {
		return network, nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if left := s.releaseAll(undo); left != nil { // a fault of the node, whatever was refused before
		err = errors.Join(errors.New(err.Error()), left)
	}
	return nil, oneline.Error(fmt.Errorf("job %s: %w", j.ID, err))
}

// isComplete reports whether the job has its network in the session's namespace. The number of the namespace is not
// enough, because the kernel reuses the numbers of namespaces: isComplete looks for the job's VFs there.
func (s *session) isComplete(known *record) bool {
	if known == nil || known.Network == nil || known.Netns != s.netns || known.Boot != s.boot {
		return false
	}
	return !slices.ContainsFunc(known.Network.Rails, func(r RailNet) bool { return !s.hasFunction(&r) })
}

// hasFunction reports whether the function of a rail is in the session's namespace, or, where only shared RDMA devices
// are given, whether the job's journal has it.
func (s *session) hasFunction(r *RailNet) bool {
	if r.Name != "" {
		_, err := s.site.hardware.find(s.space, r.PCI)
		return err == nil
	}
	e, err := s.state.readEntry(r.PCI)
	if err == nil && e.RDMA == config.RDMAExclusive {
		_, err = s.site.hardware.findRDMA(s.space, r.PCI)
	}
	return err == nil && e.Job == s.job
}

// attach gives the job its VFs, without undoing anything after an error. The record gets its network last: a record
// without one is an attach that was interrupted.
func (s *session) attach(ctx context.Context, j Job) (*Network, error) {
	rec, rails, err := s.reserveVFs(ctx, j)
	if err != nil {
		return nil, err
	}
	if err := s.prepareNamespace(); err != nil {
		return nil, err
	}
	if err := s.doAll(ctx, rec, rails); err != nil {
		return nil, err
	}
	rec.Network, err = s.describeNetwork(rec, rails)
	if err != nil {
		return nil, err
	}
	return rec.Network, writeJournal(s.state.jobPath(s.job), rec)
}

// Causes with which the other steps of a job end. They tell which of several errors came first.
var (
	errOther   = errors.New("another rail of the job failed")
	errControl = errors.New("the job's control interface failed")
)

// prepareNamespace sets up what programs expect in the job's namespace: a loopback interface that is up, and the node's
// groups that may ping without privilege, because a new namespace has none (icmp(7)).
func (s *session) prepareNamespace() error {
	const ping = "ipv4/ping_group_range"
	lo, err := s.space.FindByName("lo")
	if err != nil {
		return err
	}
	if err := s.space.SetUp(lo.Index); err != nil {
		return err
	}
	groups, err := s.host.ReadSysctl(s.site.Roots.Proc, ping)
	if err != nil {
		return err
	}
	_, err = s.space.SetSysctls(s.site.Roots.Proc, []link.Sysctl{{Name: ping, Value: groups}})
	return err
}

// doAll creates the control interface while the rails go through their steps, because each of them probes its network,
// which takes time. The first error ends the others and is returned: the errors of the others only follow from it.
func (s *session) doAll(ctx context.Context, rec *record, rails []*rail) error {
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
	err := s.doRails(ctx, rails)
	if err != nil {
		cancel(errOther)
	}
	controlErr := <-control
	if err == nil || controlErr != nil && context.Cause(ctx) == errControl {
		return controlErr
	}
	return err
}

// doRails takes all rails through their steps in parallel. The first error ends the others and is returned. doRails
// still waits for them: no step may change a VF while the undo runs.
func (s *session) doRails(ctx context.Context, rails []*rail) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var once sync.Once
	var first error
	err := s.forEachRail(rails, func(r *rail) error {
		if err := r.doSteps(ctx); err != nil {
			once.Do(func() { first = err; cancel(errOther) })
		}
		return nil
	})
	return errors.Join(err, first)
}

// reserveVFs chooses VFs and writes their journals, with the node's lock: from the journal on, no other job chooses the
// same VF.
func (s *session) reserveVFs(ctx context.Context, j Job) (*record, []*rail, error) {
	lock, err := s.state.lockNode(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer lock.Close()
	chosen, err := s.chooseVFs(j)
	if err != nil {
		return nil, nil, err
	}
	rec := &record{Boot: s.boot, Job: s.job, Netns: s.netns, Label: j.Label}
	if rec.Control, err = s.planControl(); err != nil {
		return nil, nil, err
	}
	// Under the node's lock, like the journals of VFs: the record takes the slot of the control interface.
	if err := writeJournal(s.state.jobPath(s.job), rec); err != nil {
		return nil, nil, err
	}
	var rails []*rail
	for _, c := range chosen {
		r := s.newRail(c)
		if err := r.observe(); err != nil { // before the journal, which must hold the original state
			return nil, nil, fmt.Errorf("%s: %w", r.entry, err)
		}
		if err := r.writeJournal(); err != nil {
			return nil, nil, err
		}
		rails = append(rails, r)
	}
	return rec, rails, s.site.onStep("", "reserve", true)
}

// chooseVFs chooses VFs for the rails that the job asks for. It reads the cards anew for each job: administrators
// change VFs, and cards come and go.
func (s *session) chooseVFs(j Job) ([]choice, error) {
	rails := s.site.Config.FindDefaultRails()
	if j.Label != "" {
		var err error
		if rails, err = s.site.Config.FindRails(j.Label); err != nil {
			return nil, err
		}
	}
	inv, err := ReadInventory(s.site.Roots, s.host, s.site.State)
	if err != nil {
		return nil, err
	}
	cards, _, err := policy.FindCards(s.site.Config, inv)
	if err != nil {
		return nil, err
	}
	held, err := s.state.listTaken(s.site.Config)
	if err != nil {
		return nil, err
	}
	uses, err := provision.FindUses(s.host, s.site.Roots, s.site.Config, cards)
	if err != nil {
		return nil, err
	}
	for pci, use := range uses {
		if held.vfs[pci] == "" {
			held.vfs[pci] = "the node uses it: " + use
		}
	}
	var gpus []*inventory.GPU
	for _, gpu := range inv.GPUs {
		if slices.Contains(j.GPUs, gpu.PCI) {
			gpus = append(gpus, gpu)
		}
	}
	return choose(rails, cards, j, gpus, held)
}

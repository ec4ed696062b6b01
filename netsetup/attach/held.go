// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/gojail/gojail/internal/pciaddress"
	"github.com/gojail/gojail/netsetup/config"
)

// HeldVF is a VF that a job has, or that is in quarantine.
type HeldVF struct {
	PCI         string
	Job         string // job that has it, or had it before the quarantine; "" if its journal is damaged
	Rail        string // "" if its journal is damaged
	Quarantined string // reason of the quarantine; "": none
	Boot        string // boot of the node in which the job got it; "" if its journal is damaged
	// Name on the node of its network interface, which is not there until the VF is released; "" if it has none, or
	// its journal is damaged.
	Interface string
	// Names of its RDMA devices, if they have left the node as well (exclusive mode).
	RDMA []string
}

// ListHeld returns the VFs that jobs have, and those in quarantine. A VF with a damaged journal is in quarantine. state
// is Site.State.
func ListHeld(state string) ([]HeldVF, error) {
	entries, err := store(state).readHeld()
	var vfs []HeldVF
	for _, e := range entries {
		v := HeldVF{PCI: e.PCI, Job: e.Job, Rail: e.Rail, Quarantined: e.Quarantined, Boot: e.Boot,
			Interface: e.Original.Name}
		if e.RDMA == config.RDMAExclusive {
			v.RDMA = append([]string{e.Original.RDMA}, e.Original.RDMAMore...)
		}
		if v.Quarantined != "" && v.Job != "" {
			v.Quarantined = fmt.Sprintf("after job %s: %s", e.Job, e.Quarantined)
		}
		vfs = append(vfs, v)
	}
	return vfs, err
}

// readHeld reads the journals of all VFs, in the order of their PCI addresses. For a damaged journal it returns an
// entry with the PCI address, and with the damage as the reason of a quarantine: the VF may be a job's, so no job gets
// it.
func (s store) readHeld() ([]*entry, error) {
	entries, bad, err := s.readEntries()
	for pci, why := range bad {
		entries = append(entries, &entry{PCI: pci, Quarantined: why})
	}
	slices.SortFunc(entries, func(a, b *entry) int { return cmp.Compare(a.PCI, b.PCI) })
	return entries, err
}

// listTaken returns what jobs hold, including VFs in quarantine, for choose.
func (s store) listTaken(cfg *config.Config) (taken, error) {
	entries, err := s.readHeld()
	held := taken{map[string]string{}, map[railSlot]string{}}
	for _, e := range entries {
		held.vfs[e.PCI] = "job " + e.Job
		if e.Quarantined != "" {
			held.vfs[e.PCI] = "in quarantine"
		}
		for _, p := range cfg.Pools {
			if _, ok := e.Pools[p.Name]; ok && p.Directory == "" {
				held.slots[railSlot{e.Rail, e.Slot}] = fmt.Sprintf("its address is that of VF %s (job %s)", e.PCI,
					e.Job)
			}
		}
	}
	return held, err
}

// ListNetworks returns the complete networks of jobs, and the errors of records that cannot be read. state is
// Site.State.
func ListNetworks(state string) (networks []*Network, problems []error) {
	jobs, err := store(state).listJournals("jobs")
	if err != nil {
		return nil, []error{err}
	}
	for _, job := range jobs {
		r, err := store(state).readRecord(job)
		switch {
		case err != nil:
			problems = append(problems, err)
		case r != nil && r.Network != nil:
			networks = append(networks, r.Network)
		}
	}
	return networks, problems
}

// HasAnything reports whether a job has a record or a VF, which may be in quarantine. It returns true if the journals
// cannot be read, because they may be the job's. state is Site.State.
func HasAnything(state, job string) bool {
	s := store(state)
	if _, err := os.Lstat(s.jobPath(job)); err == nil {
		return true
	}
	left, err := s.readEntriesOf(job)
	return len(left) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// Lift ends the quarantine of a VF that an administrator has restored. It removes the VF's journal, and with it the
// recorded original state. It holds the locks of the job and of the node, so that nobody else restores the VF or gives
// it to a job meanwhile. It calls busy with a lock's path before it waits for that lock.
func Lift(ctx context.Context, state, pci string, busy func(path string)) error {
	s := store(state)
	if !pciaddress.IsValid(pci) {
		return fmt.Errorf("%.30q is not a PCI address such as 0000:86:00.2", pci)
	}
	if _, err := os.Lstat(state); errors.Is(err, fs.ErrNotExist) { // no job ever had a VF here
		return notInQuarantineError(pci)
	}
	if e, err := s.readEntry(pci); err == nil {
		take := func(ctx context.Context) (*os.File, error) { return s.lockJob(ctx, e.Job) }
		lock, err := takeAloud(ctx, take, func() { busy(s.jobLocksPath()) })
		if err != nil {
			return err
		}
		defer lock.Close()
	}
	// The journal is read again under the node's lock: until then another process could release the VF.
	lock, err := LockNode(ctx, state, busy)
	if err != nil {
		return err
	}
	defer lock.Close()
	e, err := s.readEntry(pci)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return notInQuarantineError(pci)
	case err == nil && e.Quarantined == "":
		return fmt.Errorf("VF %s is not in quarantine: job %s holds it; if the job has ended, run: gojail sweep", pci,
			e.Job)
	}
	return removeJournal(s.vfPath(pci))
}

// notInQuarantineError is the error of Lift for a VF that is free, or that no job ever had.
func notInQuarantineError(pci string) error { return fmt.Errorf("VF %s is not in quarantine", pci) }

// ReadNetwork returns the network of a job. It fails with fs.ErrNotExist if the job has no
// network or an incomplete one. state is Site.State.
func ReadNetwork(state, job string) (*Network, error) {
	if !isJobName(job) {
		return nil, fmt.Errorf("%.70q is not a job", job)
	}
	r, err := store(state).readRecord(job)
	if err != nil {
		return nil, err
	}
	if r == nil || r.Network == nil {
		return nil, &os.PathError{Op: "read the network of", Path: "job " + job, Err: fs.ErrNotExist}
	}
	return r.Network, nil
}

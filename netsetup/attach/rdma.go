// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/link"
)

// movesRDMAFirst reports whether the RDMA device moves before the interface. On InfiniBand it does, because the
// interface belongs to it: its move creates the interface again.
func (e *entry) movesRDMAFirst() bool {
	return e.RDMA == config.RDMAExclusive && e.Link == config.InfiniBand
}

// movesRDMALater reports whether the RDMA device moves after the interface, as that of an Ethernet VF does.
func (e *entry) movesRDMALater() bool {
	return e.RDMA == config.RDMAExclusive && e.Link != config.InfiniBand
}

// countRDMA returns the number of RDMA devices that the function has.
func (e *entry) countRDMA() int { return 1 + len(e.Original.RDMAMore) }

// hasAllRDMA reports whether all RDMA devices of the function are in the node's namespace.
func (r *rail) hasAllRDMA() (bool, error) {
	names, err := r.site.hardware.findRDMA(r.host, r.entry.PCI)
	if errors.Is(err, link.ErrNotFound) {
		return false, nil
	}
	return len(names) >= r.entry.countRDMA(), err
}

// moveAllRDMA moves all RDMA devices of the function that are in a namespace to another one.
func (r *rail) moveAllRDMA(from, to *link.Namespace) error {
	names, err := r.site.hardware.findRDMA(from, r.entry.PCI)
	for _, name := range names {
		err = errors.Join(err, r.site.hardware.moveRDMA(from, name, to))
	}
	return err
}

// moveRDMA moves the RDMA device into the job. It holds the node's lock, because a move renumbers the devices: without
// the lock, the name that was found could mean another device.
func (r *rail) moveRDMA(ctx context.Context) error {
	lock, err := r.state.lockNode(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	return r.moveAllRDMA(r.host, r.job)
}

// returnRDMA moves the RDMA device back. The request goes to the job's namespace, because the kernel looks for the
// device there. If that namespace is gone, the kernel has returned the device, and returnRDMA waits for it.
func (r *rail) returnRDMA(ctx context.Context) error {
	lock, err := r.state.lockNode(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	if r.job != nil {
		if err := r.moveAllRDMA(r.job, r.host); err != nil && !errors.Is(err, link.ErrNotFound) {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, r.site.homeTimeout())
	defer cancel()
	for {
		if home, err := r.hasAllRDMA(); home || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the RDMA device of PCI device %s is still missing after %v: %w", r.entry.PCI,
				r.site.homeTimeout(), link.ErrNotFound)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// findRDMA returns the RDMA devices of a rail and their files. It is called after the last move, because a move may
// rename the devices and renumber their files.
func (r *rail) findRDMA() (names []string, files []link.CharDevice, err error) {
	ns := r.host
	switch r.entry.RDMA {
	case config.RDMAExclusive:
		ns = r.job
	case config.RDMAShared:
	default:
		return nil, nil, nil
	}
	names, err = r.site.hardware.findRDMA(ns, r.entry.PCI)
	for _, name := range names {
		more, filesErr := r.site.hardware.listRDMAFiles(ns, name)
		files, err = append(files, more...), errors.Join(err, filesErr)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", r.entry, err)
	}
	return names, files, err
}

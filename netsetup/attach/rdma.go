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

// moveRDMA moves the RDMA device into the job. It holds the node's lock, because a move renumbers the devices: without
// the lock, the name that was found could mean another device.
func (r *rail) moveRDMA(ctx context.Context) error {
	lock, err := r.state.lockNode(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	name, err := r.site.hardware.findRDMA(r.host, r.entry.PCI)
	if err != nil {
		return err
	}
	return r.site.hardware.moveRDMA(r.host, name, r.job)
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
		name, err := r.site.hardware.findRDMA(r.job, r.entry.PCI)
		if err == nil {
			err = r.site.hardware.moveRDMA(r.job, name, r.host)
		}
		if err != nil && !errors.Is(err, link.ErrNotFound) {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, r.site.homeTimeout())
	defer cancel()
	for {
		_, err := r.site.hardware.findRDMA(r.host, r.entry.PCI)
		if err == nil || !errors.Is(err, link.ErrNotFound) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; still missing after %v", err, r.site.homeTimeout())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// findRDMA returns the RDMA device of a rail and its files. It is called after the last move, because a move may rename
// the device and renumber its files.
func (r *rail) findRDMA() (name string, files []link.CharDevice, err error) {
	ns := r.host
	switch r.entry.RDMA {
	case config.RDMAExclusive:
		ns = r.job
	case config.RDMAShared:
	default:
		return "", nil, nil
	}
	if name, err = r.site.hardware.findRDMA(ns, r.entry.PCI); err != nil {
		return "", nil, fmt.Errorf("%s: %w", r.entry, err)
	}
	files, err = r.site.hardware.listRDMAFiles(ns, name)
	if err != nil {
		err = fmt.Errorf("%s: %w", r.entry, err)
	}
	return name, files, err
}

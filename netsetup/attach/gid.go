// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/link"
)

// gidTime is the timeout for the kernel to add a new address to a GID table, which it does
// in a work queue.
const gidTime = 2 * time.Second

// usesRoCE reports whether the job uses RDMA over Ethernet, by an address of the rail: only then is there a GID to wait
// for.
func (e *entry) usesRoCE() bool {
	return e.hasInterface() && e.Link != config.InfiniBand && len(e.Pools) > 0 &&
		(e.RDMA == config.RDMAExclusive || e.RDMA == config.RDMAShared)
}

// waitForGID waits for the RoCE v2 GID of the rail's address on the first RDMA device, so that no program starts before
// it exists, and stores its index. A missing GID is no error: programs that do not use RDMA run without it, and the
// others report it.
func (r *rail) waitForGID(ctx context.Context) error {
	ns := r.job
	if r.entry.RDMA == config.RDMAShared {
		ns = r.host // the device itself does not move
	}
	devices, err := r.site.hardware.findRDMA(ns, r.entry.PCI)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, gidTime)
	defer cancel()
	address := r.entry.Pools[r.config.Pools[0].Name]
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		index, err := r.site.hardware.findGID(ns, devices[0], address)
		if err != nil {
			return err
		}
		if index >= 0 {
			r.gid = &index
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// findGID returns the index of an address in the GID table of a device's first port, below a sysfs root; -1 if the
// table does not have it. Of several entries it takes the lowest index. The GID of an IPv4 address is ::ffff:a.b.c.d
// (RoCE v2 annex, A17.4).
func findGID(sys, device string, address netip.Addr) (int, error) {
	port := filepath.Join(sys, "class/infiniband", device, "ports/1")
	entries, err := os.ReadDir(filepath.Join(port, "gids"))
	if err != nil {
		return -1, fmt.Errorf("read the GIDs of RDMA device %s: %w", device, err)
	}
	found := -1
	for _, e := range entries {
		index, err := strconv.Atoi(e.Name())
		if err != nil || found >= 0 && index > found {
			continue
		}
		gid, gidErr := os.ReadFile(filepath.Join(port, "gids", e.Name()))
		kind, kindErr := os.ReadFile(filepath.Join(port, "gid_attrs/types", e.Name()))
		if gidErr != nil || kindErr != nil || strings.TrimSpace(string(kind)) != "RoCE v2" {
			continue // an entry that is not in use has no type
		}
		if a, err := netip.ParseAddr(strings.TrimSpace(string(gid))); err == nil && a.As16() == address.As16() {
			found = index
		}
	}
	return found, nil
}

// findCommonGID returns the GID index that all rails have in common, as text; "" if the rails differ or have none. NCCL
// takes one index for all devices (NCCL_IB_GID_INDEX).
func findCommonGID(n *Network) string {
	text := ""
	for _, r := range n.Rails {
		switch {
		case r.RDMA == "":
		case r.GID == nil:
			return ""
		case text != "" && text != strconv.Itoa(*r.GID):
			return ""
		default:
			text = strconv.Itoa(*r.GID)
		}
	}
	return text
}

// newFindGID returns findGID for real devices, with a sysfs of the namespace that has the device.
func newFindGID(proc string) func(*link.Namespace, string, netip.Addr) (int, error) {
	return func(ns *link.Namespace, device string, address netip.Addr) (index int, err error) {
		err = withSysfs(proc, ns, func(sys string) error { index, err = findGID(sys, device, address); return err })
		return index, err
	}
}

// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/netns"
)

// The modes in which network namespaces share RDMA devices (rdma-system(8)).
const (
	RDMAShared    = "shared"    // every device is in every namespace
	RDMAExclusive = "exclusive" // each device is in one namespace
)

// RDMADevice is an RDMA device as seen in its namespace. Its name and index change when
// other devices are added or removed; it is identified by its PCI address, see FindRDMA.
type RDMADevice struct {
	Index    uint32
	Name     string // "mlx5_3"
	NodeGUID string // "0c42:a103:0065:ac1e", as in sysfs
}

// withRDMA calls f with a handle whose socket and thread are in the namespace: the kernel
// checks both, and the library's default families do not include RDMA.
func (n *Namespace) withRDMA(asked string, f func(*netlink.Handle) error) error {
	err := netns.RunInside(n.fd, func() error {
		handle, err := netlink.NewHandle(unix.NETLINK_RDMA)
		if err != nil {
			return err
		}
		defer handle.Close()
		return f(handle)
	})
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return fmt.Errorf("%s: %w; the kernel has no RDMA: modprobe ib_core", asked, err)
	}
	return explainError(err, "%s", asked)
}

// ReadRDMAMode returns the RDMA mode of the kernel, which all namespaces share. Linux 5.2.
func (n *Namespace) ReadRDMAMode() (mode string, err error) {
	err = n.withRDMA("read the RDMA mode", func(h *netlink.Handle) (err error) {
		mode, err = h.RdmaSystemGetNetnsMode()
		return err
	})
	return mode, err
}

// SetRDMAMode sets the RDMA mode of the kernel, from the initial namespace. It fails with
// ErrRDMABusy if any other network namespace exists, such as that of a service with
// PrivateNetwork=.
func (n *Namespace) SetRDMAMode(mode string) error {
	err := n.withRDMA("set the RDMA mode to "+mode,
		func(h *netlink.Handle) error { return h.RdmaSystemSetNetnsMode(mode) })
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("set the RDMA mode to %s: %w; set netns_mode of ib_core in /etc/modprobe.d, update the "+
			"initramfs and reboot", mode, ErrRDMABusy)
	}
	return err
}

// ListRDMADevices returns the RDMA devices in the namespace.
func (n *Namespace) ListRDMADevices() (devices []RDMADevice, err error) {
	err = n.withRDMA("list the RDMA devices", func(h *netlink.Handle) error {
		found, err := h.RdmaLinkList()
		for _, d := range found {
			devices = append(devices, RDMADevice{d.Attrs.Index, d.Attrs.Name, toSysfsGUID(d.Attrs.NodeGuid)})
		}
		return err
	})
	return devices, err
}

// toSysfsGUID converts the library's "1e:ac:65:00:03:a1:42:0c", lowest byte first, to the
// form of sysfs.
func toSysfsGUID(library string) string {
	b := strings.Split(library, ":")
	if len(b) != 8 {
		return library
	}
	return b[7-0] + b[6] + ":" + b[5] + b[4] + ":" + b[3] + b[2] + ":" + b[1] + b[0]
}

// MoveRDMA moves an RDMA device to another namespace and keeps its name. The kernel creates
// the IPoIB interfaces of the device again in the initial namespace, with a new index: on
// InfiniBand, MoveRDMA precedes the move of the interface. Open contexts of the device end.
// It fails with ErrRDMAShared outside the exclusive mode, and with EOPNOTSUPP if the driver
// does not support the move (rxe and siw of 6.12).
func MoveRDMA(from *Namespace, name string, to *Namespace) error {
	asked := fmt.Sprintf("move RDMA device %s to another network namespace", name)
	return from.withRDMA(asked, func(h *netlink.Handle) error {
		mode, err := h.RdmaSystemGetNetnsMode()
		if err != nil {
			return err
		}
		if mode != RDMAExclusive {
			return fmt.Errorf("%w; the policy's mode is set by `gojail vf apply`", ErrRDMAShared)
		}
		devices, err := h.RdmaLinkList()
		if err != nil {
			return err
		}
		for _, d := range devices {
			if d.Attrs.Name == name {
				return h.RdmaLinkSetNsFd(d, uint32(to.fd))
			}
		}
		return fmt.Errorf("%w: no such device in its namespace", ErrNotFound)
	})
}

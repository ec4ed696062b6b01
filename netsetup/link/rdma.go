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

// The modes of RDMA devices and network namespaces (rdma-system(8)).
const (
	RDMAShared    = "shared"    // every device is in every namespace
	RDMAExclusive = "exclusive" // each device is in one namespace
)

// RDMADevice is an RDMA device as its namespace sees it. Names and indexes change
// when others come and go: the identity is the PCI address, see RDMAByPCI.
type RDMADevice struct {
	Index    uint32
	Name     string // "mlx5_3"
	NodeGUID string // "0c42:a103:0065:ac1e", as in sysfs
}

// rdma gives f a handle whose socket and thread are in the namespace: the kernel
// looks at both, and the library's own choice of families has no RDMA.
func (n *Namespace) rdma(asked string, f func(*netlink.Handle) error) error {
	err := netns.Inside(n.fd, func() error {
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
	return failed(err, "%s", asked)
}

// RDMAMode tells the mode of the whole machine. Linux 5.2.
func (n *Namespace) RDMAMode() (mode string, err error) {
	err = n.rdma("read the RDMA mode", func(h *netlink.Handle) (err error) {
		mode, err = h.RdmaSystemGetNetnsMode()
		return err
	})
	return mode, err
}

// SetRDMAMode sets the mode of the whole machine, from the initial namespace.
// ErrRDMABusy: any other network namespace exists; services with PrivateNetwork= have one.
func (n *Namespace) SetRDMAMode(mode string) error {
	err := n.rdma("set the RDMA mode to "+mode, func(h *netlink.Handle) error { return h.RdmaSystemSetNetnsMode(mode) })
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("set the RDMA mode to %s: %w; set netns_mode of ib_core in /etc/modprobe.d, update the initramfs and reboot", mode, ErrRDMABusy)
	}
	return err
}

// RDMADevices lists the RDMA devices that are in the namespace.
func (n *Namespace) RDMADevices() (devices []RDMADevice, err error) {
	err = n.rdma("list the RDMA devices", func(h *netlink.Handle) error {
		found, err := h.RdmaLinkList()
		for _, d := range found {
			devices = append(devices, RDMADevice{d.Attrs.Index, d.Attrs.Name, sysfsGUID(d.Attrs.NodeGuid)})
		}
		return err
	})
	return devices, err
}

// sysfsGUID turns the library's "1e:ac:65:00:03:a1:42:0c", lowest byte first, into sysfs's form.
func sysfsGUID(library string) string {
	b := strings.Split(library, ":")
	if len(b) != 8 {
		return library
	}
	return b[7-0] + b[6] + ":" + b[5] + b[4] + ":" + b[3] + b[2] + ":" + b[1] + b[0]
}

// MoveRDMA moves an RDMA device to another namespace; its name stays. IPoIB
// interfaces of the device are made anew, by another index, in the initial
// namespace: on InfiniBand this comes before the interface is moved. Open
// contexts of the device end. ErrRDMAShared: not in exclusive mode. EOPNOTSUPP
// in exclusive mode: the driver cannot (rxe and siw of 6.12).
func MoveRDMA(from *Namespace, name string, to *Namespace) error {
	asked := fmt.Sprintf("move RDMA device %s to another network namespace", name)
	return from.rdma(asked, func(h *netlink.Handle) error {
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

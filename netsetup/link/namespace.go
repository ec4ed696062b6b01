// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/netns"
)

// Namespace is an open network namespace with netlink sockets inside it. Its
// methods may be called by several goroutines at once; one socket answers one of
// them at a time, so what is to run in parallel opens the namespace twice.
//
// It holds the namespace: one that should die with its last process is closed.
type Namespace struct {
	fd     int
	handle *netlink.Handle
	socket map[int]*nl.SocketHandle // for the messages that are built here; with the kernel's own error texts
}

// Open opens netlink sockets in the network namespace that the descriptor ns
// refers to. The descriptor is duplicated; the caller's own may be closed.
func Open(ns int) (*Namespace, error) {
	fd, err := unix.FcntlInt(uintptr(ns), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a network namespace: descriptor %d: %w", ns, err)
	}
	n := &Namespace{fd: fd}
	if err := netns.Inside(fd, n.openSockets); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// openSockets is called in the namespace: the library's own way there does not check that the thread came back.
func (n *Namespace) openSockets() (err error) {
	if n.handle, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("open a network namespace: netlink socket: %w", err)
	}
	s, err := nl.GetNetlinkSocketAt(-1, -1, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("open a network namespace: netlink socket: %w", err)
	}
	n.socket = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: s}}
	return s.SetExtAck(true)
}

// Close closes the descriptor and the sockets; again, or of a nil Namespace, it
// does nothing. Any other method fails afterwards, or panics: without its sockets
// the library would act on the caller's own namespace instead.
func (n *Namespace) Close() {
	if n == nil || n.fd < 0 {
		return
	}
	if n.handle != nil {
		n.handle.Close()
	}
	for _, s := range n.socket { // closed, they stay in the map
		s.Close()
	}
	unix.Close(n.fd)
	n.handle, n.fd = nil, -1
}

// FD is the descriptor of the namespace; it belongs to n.
func (n *Namespace) FD() int { return n.fd }

// request is a netlink message to rtnetlink in this namespace.
func (n *Namespace) request(kind, flags int) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(kind, flags)
	req.Sockets = n.socket
	return req
}

// dump executes a dump, again if the kernel says that it changed meanwhile.
func dump(ask func() ([][]byte, error)) ([][]byte, error) {
	for range 10 {
		if messages, err := ask(); !errors.Is(err, nl.ErrDumpInterrupted) {
			return messages, err
		}
	}
	return nil, fmt.Errorf("the list changed ten times while it was read")
}

// Sysfs mounts a sysfs that shows this namespace's devices, without a place in
// any mount tree, and returns its root; "/proc/self/fd/N" is then a sysfs root
// for package inventory and for RDMAByPCI. The caller closes it, which unmounts it.
func (n *Namespace) Sysfs() (int, error) {
	root := -1
	err := netns.Inside(n.fd, func() error {
		context, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
		if err != nil {
			return err
		}
		defer unix.Close(context)
		if err := unix.FsconfigCreate(context); err != nil {
			return err
		}
		root, err = unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
		return err
	})
	if err != nil {
		return -1, fmt.Errorf("mount a sysfs of a network namespace: %w; CAP_SYS_ADMIN and Linux 5.2 are needed", err)
	}
	return root, nil
}

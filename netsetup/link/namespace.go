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

// Namespace is an open network namespace with netlink sockets inside it. Its methods may be
// called by several goroutines at once; a socket serves one call at a time, so parallel work
// needs a Namespace for each goroutine.
//
// An open Namespace keeps the network namespace alive.
type Namespace struct {
	fd     int
	handle *netlink.Handle
	socket map[int]*nl.SocketHandle // for messages that this package builds; with the kernel's extended error texts
}

// Open opens netlink sockets in the network namespace that the descriptor ns refers to. It
// duplicates the descriptor; the caller may close its own.
func Open(ns int) (*Namespace, error) {
	fd, err := unix.FcntlInt(uintptr(ns), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a network namespace: descriptor %d: %w", ns, err)
	}
	n := &Namespace{fd: fd}
	if err := netns.RunInside(fd, n.openSockets); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// openSockets opens the netlink sockets. It is called in the namespace, because the
// library's own switch of namespaces does not check that the thread has returned.
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

// Close closes the descriptor and the sockets; a second call, and a call on a nil Namespace,
// does nothing. Afterwards all other methods fail or panic: without its sockets the library
// would act on the caller's own namespace.
func (n *Namespace) Close() {
	if n == nil || n.fd < 0 {
		return
	}
	if n.handle != nil {
		n.handle.Close()
	}
	for _, s := range n.socket { // closed sockets stay in the map
		s.Close()
	}
	unix.Close(n.fd)
	n.handle, n.fd = nil, -1
}

// FD returns the descriptor of the namespace, which belongs to n.
func (n *Namespace) FD() int { return n.fd }

// newRequest returns an rtnetlink message for this namespace.
func (n *Namespace) newRequest(kind, flags int) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(kind, flags)
	req.Sockets = n.socket
	return req
}

// retryDump executes a dump, and repeats it if the kernel reports a change in between.
func retryDump(ask func() ([][]byte, error)) ([][]byte, error) {
	for range 10 {
		if messages, err := ask(); !errors.Is(err, nl.ErrDumpInterrupted) {
			return messages, err
		}
	}
	return nil, fmt.Errorf("the list changed ten times while it was read")
}

// MountSysfs mounts a sysfs that shows this namespace's devices, detached from all mount
// trees, and returns its root: "/proc/self/fd/N" is then a sysfs root for package inventory
// and for FindRDMA. The caller closes the descriptor, which unmounts the sysfs.
func (n *Namespace) MountSysfs() (int, error) {
	root := -1
	err := netns.RunInside(n.fd, func() error {
		context, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
		if err != nil {
			return err
		}
		defer unix.Close(context)
		if err := unix.FsconfigCreate(context); err != nil {
			return err
		}
		root, err = unix.Fsmount(context, unix.FSMOUNT_CLOEXEC,
			unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
		return err
	})
	if err != nil {
		return -1, fmt.Errorf("mount a sysfs of a network namespace: %w; CAP_SYS_ADMIN and Linux 5.2 are needed", err)
	}
	return root, nil
}

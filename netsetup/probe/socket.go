// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socket is a packet socket on one link; it receives the packets that its filter accepts.
type socket struct {
	file     *os.File
	raw      syscall.RawConn
	hardware hardware
	protocol uint16 // ETH_P_ARP or ETH_P_IPV6
}

// errDone ends an exchange that has its answer.
var errDone = errors.New("done")

// openSocket opens a socket on a thread in the namespace. It receives nothing before it has
// a filter: a socket of protocol 0 receives no packets, and bind(2) sets the protocol.
func openSocket(h hardware, f filter) (*socket, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("packet socket: %w; CAP_NET_RAW is needed", err)
	}
	s := &socket{file: os.NewFile(uintptr(fd), "packet socket"), hardware: h, protocol: f.protocol}
	if s.raw, err = s.file.SyscallConn(); err == nil {
		err = s.setFilter(f)
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: toBigEndian(f.protocol), Ifindex: h.index})
	}
	if err != nil {
		s.file.Close()
		return nil, fmt.Errorf("packet socket: %w", err)
	}
	return s, nil
}

// setFilter replaces the socket's filter, and drops the packets that the previous filter
// accepted.
func (s *socket) setFilter(f filter) (err error) {
	control := s.raw.Control(func(fd uintptr) {
		program := unix.SockFprog{Len: uint16(len(f.program)), Filter: &f.program[0]}
		if err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
			return
		}
		for rest := error(nil); rest == nil || rest == unix.EINTR; {
			_, _, rest = unix.Recvfrom(int(fd), make([]byte, 1), 0)
		}
	})
	return errors.Join(control, err)
}

// joinGroup joins an IPv6 group by a UDP socket, so that the link and the switches receive
// it (MLD): a membership of the packet socket would change the card's filter only.
func joinGroup(index int, group netip.Addr) (int, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	request := &unix.IPv6Mreq{Multiaddr: group.As16(), Interface: uint32(index)}
	if err := unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, request); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("join %s: %w; check that IPv6 is enabled on this link (disable_ipv6)", group, err)
	}
	return fd, nil
}

// exchange sends a packet and receives packets until the timeout of the try, as often as o demands. It calls hear with
// each packet and its sender's hardware address; an error of hear ends the exchange. exchange fails with ErrSilent if
// hear returned no error.
func (s *socket) exchange(ctx context.Context, o Options, send func() error,
	hear func([]byte, net.HardwareAddr) error) error {
	o = o.withDefaults()
	defer s.file.SetDeadline(time.Time{}) // no deadline for later packets
	// A deadline in the past wakes the reader when ctx ends.
	defer context.AfterFunc(ctx, func() { s.file.SetDeadline(time.Unix(1, 0)) })()
	for range o.Tries {
		// The deadline ends the try even if packets keep arriving: it is checked before each read.
		s.file.SetDeadline(time.Now().Add(o.Timeout))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := send()
		for err == nil || errors.Is(err, unix.ENOBUFS) { // a full queue has the effect of a lost packet
			packet, by, receiveErr := s.receive()
			if err = receiveErr; err == nil {
				err = hear(packet, by)
			}
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return ErrSilent
}

// receive returns a packet, and the hardware address of its sender if the link layer reports it.
func (s *socket) receive() (packet []byte, by net.HardwareAddr, err error) {
	buffer := make([]byte, 512)
	var n int
	var from unix.Sockaddr
	waitErr := s.raw.Read(func(fd uintptr) bool {
		for {
			n, from, err = unix.Recvfrom(int(fd), buffer, 0)
			if err != unix.EINTR {
				return err != unix.EAGAIN
			}
		}
	})
	if waitErr != nil {
		return nil, nil, waitErr
	}
	if errors.Is(err, unix.ENETDOWN) {
		err = fmt.Errorf("%w: the link went down", ErrNoCarrier)
	}
	if a, ok := from.(*unix.SockaddrLinklayer); ok && a.Halen <= 8 {
		by = a.Addr[:a.Halen]
	}
	return buffer[:max(n, 0)], by, err
}

// packet is a packet to be sent, and its destination.
type packet struct {
	to   net.HardwareAddr
	data []byte
}

// send builds the socket address itself: an IPoIB address has 20 bytes, and
// unix.SockaddrLinklayer has room for 8 (packet(7)).
func (s *socket) send(p packet) (err error) {
	var address struct {
		unix.RawSockaddrLinklayer
		more [24]byte
	}
	address.Family, address.Protocol, address.Ifindex = unix.AF_PACKET, toBigEndian(s.protocol), int32(s.hardware.index)
	address.Halen = uint8(len(p.to))
	start := unsafe.Offsetof(address.Addr)
	copy(unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&address), start)), 32), p.to)
	length := start + uintptr(max(len(p.to), 8))
	waitErr := s.raw.Write(func(fd uintptr) bool {
		for {
			_, _, errno := unix.Syscall6(unix.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&p.data[0])), uintptr(len(p.data)),
				0, uintptr(unsafe.Pointer(&address)), length)
			err = nil
			if errno != 0 {
				err = errno
			}
			if errno != unix.EINTR {
				return errno != unix.EAGAIN
			}
		}
	})
	if errors.Is(err, unix.ENETDOWN) {
		return fmt.Errorf("%w: the link went down", ErrNoCarrier)
	}
	return errors.Join(waitErr, err)
}

// toBigEndian returns a 16-bit number in network byte order.
func toBigEndian(v uint16) uint16 { return v<<8 | v>>8 }

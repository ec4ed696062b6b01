// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/hex"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var (
	ethernet = hardware{1, unix.ARPHRD_ETHER, mac("02 00 00 00 00 01"), mac("ff ff ff ff ff ff")}
	ipoib    = hardware{
		1, unix.ARPHRD_INFINIBAND,
		mac("80 00 02 08 fe 80 00 00 00 00 00 00 0c 42 a1 03 00 65 ac 1e"),
		mac("00 ff ff ff ff 12 40 1b 80 01 00 00 00 00 00 00 ff ff ff ff"),
	}
	stranger = map[uint16]net.HardwareAddr{
		unix.ARPHRD_ETHER:      mac("02 00 00 00 00 02"),
		unix.ARPHRD_INFINIBAND: mac("80 00 02 09 fe 80 00 00 00 00 00 00 0c 42 a1 03 00 65 ac 2e"),
	}
)

func mac(s string) net.HardwareAddr {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// other is a machine with the hardware address of the stranger.
func other(h hardware) *socket {
	h.address = stranger[h.kind]
	return &socket{hardware: h}
}

func TestARPOnTheWire(t *testing.T) {
	p := arpProbe(&socket{hardware: ethernet}, ip("192.0.2.7"))
	assert.Equal(t, mac("ff ff ff ff ff ff"), p.to)
	assert.Equal(t, "00010800060400010200000000010000000000000000"+"0000c0000207", hex.EncodeToString(p.data))
	p = arpAnnouncement(&socket{hardware: ipoib}, ip("192.0.2.7"))
	assert.Equal(t, ipoib.broadcast, p.to)
	assert.Equal(t, "0020080014040001"+hex.EncodeToString(ipoib.address)+"c0000207"+strings.Repeat("00", 20)+"c0000207", hex.EncodeToString(p.data))
}

func TestNDPOnTheWire(t *testing.T) {
	p := neighbourProbe(&socket{hardware: ethernet}, ip("2001:db8::12:3456"))
	assert.Equal(t, mac("33 33 ff 12 34 56"), p.to)
	assert.Equal(t, "60000000"+"0018"+"3aff"+strings.Repeat("00", 16)+"ff0200000000000000000001ff123456"+
		"8700"+"e41e"+"00000000"+"20010db8000000000000000000123456", hex.EncodeToString(p.data))
	p = neighbourAnnouncement(&socket{hardware: ipoib}, ip("2001:db8::7"))
	assert.Equal(t, mac("00 ff ff ff ff 12 60 1b 80 01 00 00 00 00 00 00 00 00 00 01"), p.to)
	assert.Equal(t, "02030000"+hex.EncodeToString(ipoib.address), hex.EncodeToString(p.data[64:]))
	for _, h := range []hardware{ethernet, ipoib} {
		p = neighbourRequest(&socket{hardware: h}, ip("2001:db8::1"), ip("2001:db8::7"))
		assert.Zero(t, checksum(ip("2001:db8::1"), solicited(ip("2001:db8::7")), p.data[40:]), "with the sum in its place the sum is zero")
	}
}

// TestJudgement: what is a conflict and what an answer, on both kinds of link.
func TestJudgement(t *testing.T) {
	four, six, gateway, gateway6 := ip("192.0.2.7"), ip("2001:db8::7"), ip("192.0.2.254"), ip("2001:db8::fe")
	for _, h := range []hardware{ethernet, ipoib} {
		own, far := &socket{hardware: h}, other(h)
		reply := far.arp(gateway, four).data
		reply[7] = arpReply
		advert := far.ndp(gateway6, six, advertisement, override, gateway6, targetOption).data
		for _, c := range []struct {
			what             string
			packet           packet
			conflict, asking bool
		}{
			{"another's probe", arpProbe(far, four), true, true},
			{"another's announcement", arpAnnouncement(far, four), true, false},
			{"another's request from it", arpRequest(far, four, gateway), true, false},
			{"another looks for it", arpRequest(far, gateway, four), false, false},
			{"another's probe for one more", arpProbe(far, gateway), false, false},
			{"our own probe", arpProbe(own, four), false, false},
			{"cut short", packet{data: arpProbe(far, four).data[:20]}, false, false},
			{"nothing", packet{}, false, false},
		} {
			check(t, own.conflict(c.packet.data, nil, four), c.what, c.conflict, c.asking)
		}
		for _, c := range []struct {
			what             string
			packet           packet
			conflict, asking bool
		}{
			{"another's probe", neighbourProbe(far, six), true, true},
			{"another's announcement", neighbourAnnouncement(far, six), true, false},
			{"another looks for it", neighbourRequest(far, gateway6, six), false, false},
			{"another's probe for one more", neighbourProbe(far, gateway6), false, false},
			{"our own announcement", neighbourAnnouncement(own, six), false, false},
			{"cut short", packet{data: neighbourProbe(far, six).data[:60]}, false, false},
		} {
			check(t, own.conflict(c.packet.data, stranger[h.kind], six), c.what, c.conflict, c.asking)
		}
		check(t, own.conflict(neighbourProbe(own, six).data, h.address, six), "our own probe", false, false)
		assert.Equal(t, stranger[h.kind], own.answer(reply, nil, four, gateway))
		assert.Nil(t, own.answer(reply, nil, gateway, gateway), "for another")
		assert.Nil(t, own.answer(arpRequest(far, gateway, four).data, nil, four, gateway), "a request is no answer")
		assert.Equal(t, stranger[h.kind], own.answer(advert, nil, six, gateway6))
		advert[7] = 64
		assert.Nil(t, own.answer(advert, nil, six, gateway6), "it came through a router")
	}
}

func check(t *testing.T, err error, what string, conflict, asking bool) {
	t.Helper()
	if !conflict {
		assert.NoError(t, err, what)
		return
	}
	var e *ConflictError
	require.ErrorAs(t, err, &e, what)
	assert.Equal(t, asking, e.asking, what)
}

// TestFilters runs the filters in the kernel, on a pair of sockets without any network.
func TestFilters(t *testing.T) {
	four, six := ip("192.0.2.7"), ip("2001:db8::7")
	for _, h := range []hardware{ethernet, ipoib} {
		far := other(h)
		reply := far.arp(four, ip("192.0.2.1")).data
		reply[7] = arpReply
		advert := neighbourAnnouncement(far, six).data
		for _, c := range []struct {
			what   string
			filter filter
			data   []byte
			passes bool
		}{
			{"sender", conflictFilter(four)(h), arpAnnouncement(far, four).data, true},
			{"target", conflictFilter(four)(h), arpProbe(far, four).data, true},
			{"other", conflictFilter(four)(h), arpRequest(far, ip("192.0.2.8"), ip("192.0.2.9")).data, false},
			{"short", conflictFilter(four)(h), arpProbe(far, four).data[:12], false},
			{"reply", answerFilter(four)(h), reply, true},
			{"request", answerFilter(four)(h), arpAnnouncement(far, four).data, false},
			{"reply of another", answerFilter(ip("192.0.2.8"))(h), reply, false},
			{"solicitation", conflictFilter(six)(h), neighbourProbe(far, six).data, true},
			{"advertisement", conflictFilter(six)(h), advert, true},
			{"solicitation of another", conflictFilter(six)(h), neighbourProbe(far, ip("2001:db8:7::7")).data, false},
			{"answer", answerFilter(six)(h), advert, true},
			{"question", answerFilter(six)(h), neighbourProbe(far, six).data, false},
			{"redirect", conflictFilter(six)(h), far.ndp(six, six, 137, 0, six, 0).data, false},
			{"echo", conflictFilter(six)(h), far.ndp(six, six, 128, 0, six, 0).data, false},
			{"TCP", conflictFilter(six)(h), append([]byte{0x60, 0, 0, 0, 0, 24, 6}, advert[7:]...), false},
			{"anything", silence(four)(h), arpProbe(far, four).data, false},
		} {
			assert.Equal(t, c.passes, passes(t, c.filter, c.data), "%s on hardware type %d", c.what, h.kind)
		}
	}
}

func passes(t *testing.T, f filter, data []byte) bool {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	program := unix.SockFprog{Len: uint16(len(f.program)), Filter: &f.program[0]}
	require.NoError(t, unix.SetsockoptSockFprog(pair[1], unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program))
	unix.Write(pair[0], data) // EPERM if it is refused
	n, err := unix.Read(pair[1], make([]byte, 512))
	return err == nil && n == len(data)
}

func TestLinksThatCannotBeAsked(t *testing.T) {
	for _, h := range []hardware{{kind: unix.ARPHRD_LOOPBACK, address: make([]byte, 6)}, {kind: unix.ARPHRD_INFINIBAND, address: make([]byte, 6)}} {
		assert.ErrorIs(t, h.check(unix.IFF_RUNNING), ErrLinkType)
	}
	assert.ErrorIs(t, ethernet.check(0), ErrNoCarrier)
	assert.NoError(t, ipoib.check(unix.IFF_RUNNING))
}

func FuzzPackets(f *testing.F) {
	far := other(ethernet)
	for _, p := range []packet{arpProbe(far, ip("192.0.2.7")), neighbourProbe(far, ip("2001:db8::7")), neighbourAnnouncement(far, ip("2001:db8::7"))} {
		f.Add(p.data)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, h := range []hardware{ethernet, ipoib} {
			s := &socket{hardware: h}
			for _, a := range []string{"192.0.2.7", "2001:db8::7"} {
				s.conflict(b, nil, ip(a))
				s.answer(b, nil, ip(a), ip(a))
			}
		}
	})
}

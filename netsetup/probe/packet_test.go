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
	ethernet = hardware{1, unix.ARPHRD_ETHER, parseMAC("02 00 00 00 00 01"), parseMAC("ff ff ff ff ff ff")}
	ipoib    = hardware{
		1, unix.ARPHRD_INFINIBAND,
		parseMAC("80 00 02 08 fe 80 00 00 00 00 00 00 0c 42 a1 03 00 65 ac 1e"),
		parseMAC("00 ff ff ff ff 12 40 1b 80 01 00 00 00 00 00 00 ff ff ff ff"),
	}
	stranger = map[uint16]net.HardwareAddr{
		unix.ARPHRD_ETHER:      parseMAC("02 00 00 00 00 02"),
		unix.ARPHRD_INFINIBAND: parseMAC("80 00 02 09 fe 80 00 00 00 00 00 00 0c 42 a1 03 00 65 ac 2e"),
	}
)

func parseMAC(s string) net.HardwareAddr {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

// newStranger returns a socket of a machine with the hardware address of the stranger.
func newStranger(h hardware) *socket {
	h.address = stranger[h.kind]
	return &socket{hardware: h}
}

func TestARPOnTheWire(t *testing.T) {
	p := buildARPProbe(&socket{hardware: ethernet}, parseIP("192.0.2.7"))
	assert.Equal(t, parseMAC("ff ff ff ff ff ff"), p.to)
	assert.Equal(t, "00010800060400010200000000010000000000000000"+"0000c0000207", hex.EncodeToString(p.data))
	p = buildARPAnnouncement(&socket{hardware: ipoib}, parseIP("192.0.2.7"))
	assert.Equal(t, ipoib.broadcast, p.to)
	assert.Equal(t, "0020080014040001"+hex.EncodeToString(ipoib.address)+"c0000207"+strings.Repeat("00", 20)+"c0000207", hex.EncodeToString(p.data))
}

func TestNDPOnTheWire(t *testing.T) {
	p := buildNeighbourProbe(&socket{hardware: ethernet}, parseIP("2001:db8::12:3456"))
	assert.Equal(t, parseMAC("33 33 ff 12 34 56"), p.to)
	assert.Equal(t, "60000000"+"0018"+"3aff"+strings.Repeat("00", 16)+"ff0200000000000000000001ff123456"+
		"8700"+"e41e"+"00000000"+"20010db8000000000000000000123456", hex.EncodeToString(p.data))
	p = buildNeighbourAnnouncement(&socket{hardware: ipoib}, parseIP("2001:db8::7"))
	assert.Equal(t, parseMAC("00 ff ff ff ff 12 60 1b 80 01 00 00 00 00 00 00 00 00 00 01"), p.to)
	assert.Equal(t, "02030000"+hex.EncodeToString(ipoib.address), hex.EncodeToString(p.data[64:]))
	for _, h := range []hardware{ethernet, ipoib} {
		p = buildNeighbourRequest(&socket{hardware: h}, parseIP("2001:db8::1"), parseIP("2001:db8::7"))
		assert.Zero(t, computeChecksum(parseIP("2001:db8::1"), toSolicitedNode(parseIP("2001:db8::7")), p.data[40:]), "with the sum in its place the sum is zero")
	}
}

// TestJudgement checks which packets are conflicts and which are answers, on both kinds of
// link.
func TestJudgement(t *testing.T) {
	four, six, gateway, gateway6 := parseIP("192.0.2.7"), parseIP("2001:db8::7"), parseIP("192.0.2.254"), parseIP("2001:db8::fe")
	for _, h := range []hardware{ethernet, ipoib} {
		own, far := &socket{hardware: h}, newStranger(h)
		reply := far.buildARP(gateway, four).data
		reply[7] = arpReply
		advert := far.buildNDP(gateway6, six, advertisement, override, gateway6, targetOption).data
		for _, c := range []struct {
			what             string
			packet           packet
			conflict, asking bool
		}{
			{"another's probe", buildARPProbe(far, four), true, true},
			{"another's announcement", buildARPAnnouncement(far, four), true, false},
			{"another's request from it", buildARPRequest(far, four, gateway), true, false},
			{"another looks for it", buildARPRequest(far, gateway, four), false, false},
			{"another's probe for one more", buildARPProbe(far, gateway), false, false},
			{"our own probe", buildARPProbe(own, four), false, false},
			{"cut short", packet{data: buildARPProbe(far, four).data[:20]}, false, false},
			{"nothing", packet{}, false, false},
		} {
			checkVerdict(t, own.checkConflict(c.packet.data, nil, four), c.what, c.conflict, c.asking)
		}
		for _, c := range []struct {
			what             string
			packet           packet
			conflict, asking bool
		}{
			{"another's probe", buildNeighbourProbe(far, six), true, true},
			{"another's announcement", buildNeighbourAnnouncement(far, six), true, false},
			{"another looks for it", buildNeighbourRequest(far, gateway6, six), false, false},
			{"another's probe for one more", buildNeighbourProbe(far, gateway6), false, false},
			{"our own announcement", buildNeighbourAnnouncement(own, six), false, false},
			{"cut short", packet{data: buildNeighbourProbe(far, six).data[:60]}, false, false},
		} {
			checkVerdict(t, own.checkConflict(c.packet.data, stranger[h.kind], six), c.what, c.conflict, c.asking)
		}
		checkVerdict(t, own.checkConflict(buildNeighbourProbe(own, six).data, h.address, six), "our own probe", false, false)
		assert.Equal(t, stranger[h.kind], own.parseAnswer(reply, nil, four, gateway))
		assert.Nil(t, own.parseAnswer(reply, nil, gateway, gateway), "for another")
		assert.Nil(t, own.parseAnswer(buildARPRequest(far, gateway, four).data, nil, four, gateway), "a request is no answer")
		assert.Equal(t, stranger[h.kind], own.parseAnswer(advert, nil, six, gateway6))
		advert[7] = 64
		assert.Nil(t, own.parseAnswer(advert, nil, six, gateway6), "it came through a router")
	}
}

func checkVerdict(t *testing.T, err error, what string, conflict, asking bool) {
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
	four, six := parseIP("192.0.2.7"), parseIP("2001:db8::7")
	for _, h := range []hardware{ethernet, ipoib} {
		far := newStranger(h)
		reply := far.buildARP(four, parseIP("192.0.2.1")).data
		reply[7] = arpReply
		advert := buildNeighbourAnnouncement(far, six).data
		for _, c := range []struct {
			what   string
			filter filter
			data   []byte
			passes bool
		}{
			{"sender", buildConflictFilter(four)(h), buildARPAnnouncement(far, four).data, true},
			{"target", buildConflictFilter(four)(h), buildARPProbe(far, four).data, true},
			{"other", buildConflictFilter(four)(h), buildARPRequest(far, parseIP("192.0.2.8"), parseIP("192.0.2.9")).data, false},
			{"short", buildConflictFilter(four)(h), buildARPProbe(far, four).data[:12], false},
			{"reply", buildAnswerFilter(four)(h), reply, true},
			{"request", buildAnswerFilter(four)(h), buildARPAnnouncement(far, four).data, false},
			{"reply of another", buildAnswerFilter(parseIP("192.0.2.8"))(h), reply, false},
			{"solicitation", buildConflictFilter(six)(h), buildNeighbourProbe(far, six).data, true},
			{"advertisement", buildConflictFilter(six)(h), advert, true},
			{"solicitation of another", buildConflictFilter(six)(h), buildNeighbourProbe(far, parseIP("2001:db8:7::7")).data, false},
			{"answer", buildAnswerFilter(six)(h), advert, true},
			{"question", buildAnswerFilter(six)(h), buildNeighbourProbe(far, six).data, false},
			{"redirect", buildConflictFilter(six)(h), far.buildNDP(six, six, 137, 0, six, 0).data, false},
			{"echo", buildConflictFilter(six)(h), far.buildNDP(six, six, 128, 0, six, 0).data, false},
			{"TCP", buildConflictFilter(six)(h), append([]byte{0x60, 0, 0, 0, 0, 24, 6}, advert[7:]...), false},
			{"anything", buildSilentFilter(four)(h), buildARPProbe(far, four).data, false},
		} {
			assert.Equal(t, c.passes, passesFilter(t, c.filter, c.data), "%s on hardware type %d", c.what, h.kind)
		}
	}
}

func passesFilter(t *testing.T, f filter, data []byte) bool {
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
	far := newStranger(ethernet)
	for _, p := range []packet{buildARPProbe(far, parseIP("192.0.2.7")), buildNeighbourProbe(far, parseIP("2001:db8::7")), buildNeighbourAnnouncement(far, parseIP("2001:db8::7"))} {
		f.Add(p.data)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, h := range []hardware{ethernet, ipoib} {
			s := &socket{hardware: h}
			for _, a := range []string{"192.0.2.7", "2001:db8::7"} {
				s.checkConflict(b, nil, parseIP(a))
				s.parseAnswer(b, nil, parseIP(a), parseIP(a))
			}
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package link

import (
	"encoding/binary"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// buildInfo returns an IFLA_VF_INFO in the kernel's format.
func buildInfo(vf uint32, address byte, attributes ...*nl.RtAttr) *nl.RtAttr {
	i := nl.NewRtAttr(nl.IFLA_VF_INFO, nil)
	i.AddChild(encodeMAC(vf, []byte{2, 0, 0, 0, 0, address}))
	for _, a := range attributes {
		i.AddChild(a)
	}
	return i
}

// TestVFsAreKnownByTheirNumber uses lists with holes and in any order.
func TestVFsAreKnownByTheirNumber(t *testing.T) {
	var list []byte
	proto := binary.BigEndian.AppendUint16(encodeWords(0, 5, 100, 3).Data, unix.ETH_P_8021AD)
	vlans := nl.NewRtAttr(nl.IFLA_VF_VLAN_LIST, nil)
	vlans.AddRtAttr(nl.IFLA_VF_VLAN_INFO, append(proto, 0, 0))
	list = append(list, buildInfo(7, 0x77).Serialize()...)
	list = append(list, buildInfo(5, 0x55, encodeWords(nl.IFLA_VF_VLAN, 5, 100, 3), vlans, encodeWords(nl.IFLA_VF_RATE, 5, 10, 1000),
		encodeWords(nl.IFLA_VF_SPOOFCHK, 5, 1), encodeWords(nl.IFLA_VF_TRUST, 5, ^uint32(0)), encodeWords(nl.IFLA_VF_LINK_STATE, 5, 2),
		encodeGUID(nl.IFLA_VF_IB_NODE_GUID, 5, 0x0c42a1030065ac1e)).Serialize()...)
	got, found := findVF(list, 5, unix.ARPHRD_ETHER)
	require.True(t, found)
	assert.Equal(t, VFKnobs{
		LinkState: new(Disable), VLAN: &VLAN{100, 3, dot1AD}, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 0x55},
		NodeGUID: new(uint64(0x0c42a1030065ac1e)), Rates: &Rates{10, 1000}, SpoofCheck: new(true),
	}, got, "trust: the driver does not tell")
	assert.Equal(t, "disable", got.LinkState.String())
	got, found = findVF(list, 7, unix.ARPHRD_ETHER)
	require.True(t, found)
	assert.Equal(t, net.HardwareAddr{2, 0, 0, 0, 0, 0x77}, got.MAC)
	_, found = findVF(list, 0, unix.ARPHRD_ETHER)
	assert.False(t, found)
	got, _ = findVF(list, 7, unix.ARPHRD_INFINIBAND)
	assert.Nil(t, got.MAC, "on InfiniBand it is no MAC")
}

func TestWhatSetVFSends(t *testing.T) {
	want := VFKnobs{
		LinkState: new(Auto), VLAN: &VLAN{100, 3, Dot1Q}, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, NodeGUID: new(uint64(1)), PortGUID: new(uint64(2)),
		Rates: &Rates{0, 1000}, SpoofCheck: new(true), Trust: new(false),
	}
	var all []string
	for _, k := range orderKnobs(3, VFKnobs{}, want) {
		assert.True(t, k.differ, k.name)
		assert.Nil(t, k.undo, "%s: it was not told", k.name)
		assert.Equal(t, uint32(3), readWord(k.attr.Data, 0), k.name)
		all = append(all, k.name)
	}
	assert.Equal(t, []string{"link state", "VLAN", "MAC", "node GUID", "port GUID", "rates", "spoof check", "trust"}, all)
	for _, k := range orderKnobs(3, want, want) {
		assert.False(t, k.differ, k.name)
	}
	for _, k := range orderKnobs(3, want, VFKnobs{}) {
		assert.False(t, k.differ, k.name)
	}
	have := want
	have.VLAN, have.Trust = &VLAN{7, 0, dot1AD}, new(true)
	for _, k := range orderKnobs(3, have, want) {
		assert.Equal(t, k.name == "VLAN" || k.name == "trust", k.differ, k.name)
		if k.name == "VLAN" { // what it was is set back with its protocol, in network byte order
			assert.Equal(t, uint16(nl.IFLA_VF_VLAN_LIST|unix.NLA_F_NESTED), k.undo.Type)
			b := k.undo.Serialize()
			assert.Equal(t, []byte{0x88, 0xa8}, b[8+12:8+14])
			assert.Len(t, b, 8+16)
		}
	}
	assert.Len(t, encodeMAC(3, want.MAC).Data, 36)
	assert.Len(t, encodeGUID(nl.IFLA_VF_IB_PORT_GUID, 3, 1).Data, 16)
}

func TestVFOfALinkThatHasNone(t *testing.T) {
	n := newSpace(t)
	index, _ := addVeth(t, n, "net1", n, "p")
	_, err := ReadVF(n, index, 0)
	assert.ErrorIs(t, err, ErrNotFound)
	assert.ErrorIs(t, SetVF(n, index, 0, VFKnobs{Trust: new(true)}), ErrNotFound)
	_, err = ReadVF(n, 4711, 0)
	assert.ErrorIs(t, err, unix.ENODEV)
	assert.ErrorContains(t, err, "read VF 0 of network interface 4711: ")
}

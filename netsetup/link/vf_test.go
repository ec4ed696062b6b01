// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"encoding/binary"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// encodeWords returns an attribute of 32-bit words, as most of a VF's are.
func encodeWords(kind int, values ...uint32) *nl.RtAttr {
	var b []byte
	for _, v := range values {
		b = binary.NativeEndian.AppendUint32(b, v)
	}
	return nl.NewRtAttr(kind, b)
}

// buildInfo returns an IFLA_VF_INFO in the kernel's format.
func buildInfo(vf uint32, address byte, attributes ...*nl.RtAttr) *nl.RtAttr {
	i := nl.NewRtAttr(nl.IFLA_VF_INFO, nil)
	i.AddRtAttr(nl.IFLA_VF_MAC, (&nl.VfMac{Vf: vf, Mac: [32]byte{2, 0, 0, 0, 0, address}}).Serialize())
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
		nl.NewRtAttr(nl.IFLA_VF_IB_NODE_GUID, (&nl.VfGUID{Vf: 5, GUID: 0x0c42a1030065ac1e}).Serialize())).Serialize()...)
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

func TestSetVFChangesWhatDiffers(t *testing.T) {
	want := VFKnobs{
		LinkState: new(Auto), VLAN: &VLAN{100, 3, Dot1Q}, MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, NodeGUID: new(uint64(1)), PortGUID: new(uint64(2)),
		Rates: &Rates{0, 1000}, SpoofCheck: new(true), Trust: new(false),
	}
	none := VFKnobs{}
	have := want
	have.VLAN, have.Trust = &VLAN{7, 0, dot1AD}, new(true)
	have.MAC = bytes.Clone(want.MAC)
	var all []string
	for _, k := range knobs {
		all = append(all, k.name)
		assert.True(t, k.differ(none, want), k.name)
		assert.False(t, k.differ(want, want), k.name)
		assert.False(t, k.differ(want, none), k.name)
		assert.Equal(t, k.name == "VLAN" || k.name == "trust", k.differ(have, want), k.name)
		_, known := k.only(none)
		assert.False(t, known, "%s: it was not reported", k.name)
	}
	assert.Equal(t, []string{"link state", "VLAN", "MAC", "node GUID", "port GUID", "rates", "spoof check", "trust"}, all)

	assert.Equal(t, []VFKnobs{
		{LinkState: want.LinkState}, {VLAN: want.VLAN}, {MAC: want.MAC},
		{NodeGUID: want.NodeGUID}, {PortGUID: want.PortGUID},
		{Rates: want.Rates}, {SpoofCheck: want.SpoofCheck}, {Trust: want.Trust},
	}, want.Split())
	assert.Empty(t, none.Split())
}

func TestGUIDInNetworkByteOrder(t *testing.T) {
	assert.Equal(t, "0c:42:a1:03:00:65:ac:1e", encodeGUID(0x0c42a1030065ac1e).String())
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

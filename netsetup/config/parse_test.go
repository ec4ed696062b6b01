// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/hostlist"
)

const wholeText = `
default = "compute"

[[policy]]
name        = "eth"
nodes       = "gpu[01-04]"
priority    = 10
nic         = { vendor = "15B3", device = "101e", root = ["0000:86:00.0"], pf = ["ens1f0#0-3", "ens2"] }
vfs         = 8
link        = "eth"
mtu         = 9000
trust       = true
spoof_check = false
vlan        = 100
qos         = 3
proto       = "802.1AD"
min_rate    = 1000
max_rate    = 100000
rdma        = "exclusive"

[[policy]]
name = "ib"
nic  = { vendor = "15b3", device = "101c" }
vfs  = 4
link = "ib"
mtu  = 4092

[[pool]]
name     = "r0"
subnet   = "10.1.0.0/24"
ranges   = ["10.1.0.128-10.1.0.255", "10.1.0.1-10.1.0.20"]
exclude  = ["10.1.0.200", "10.1.0.130 - 10.1.0.139"]
gateway  = "10.1.0.10"
routes   = [{ to = "10.0.0.0/8", via = "10.1.0.5" }, { to = "192.168.0.0/16" }]
nodes    = "gpu[01-04]"
per_node = 8

[[pool]]
name      = "r0v6"
subnet    = "fd00:1::/64"
gateway   = "fe80::1"
directory = "/shared/gojail/r0v6"

[[pool]]
name      = "ctl"
subnet    = "172.16.0.0/16"
directory = "/shared/gojail/ctl"
conflict  = true

[[rail]]
name   = "rail0"
policy = "eth"
pools  = ["r0", "r0v6"]
gres   = "nic:rail0"
vlan   = 200
labels = ["compute", "storage"]
table  = 400

[[rail]]
name   = "ib0"
policy = "ib"
pkey   = 0x12
labels = ["compute"]

[control]
pool      = "ctl"
interface = "eth0"
mtu       = 1400

[probe]
conflict = false
gateway  = false
timeout  = "50ms"
tries    = 2
carrier  = "1m"

[ufm]
url         = "https://ufm.example.org:8443/?"
credentials = "/etc/gojail/ufm.secret"
ca          = "/etc/gojail/ufm.pem"
required    = false
`

func TestParseReadsEveryKey(t *testing.T) {
	c, err := Parse(wholeText, "gpu01")
	require.NoError(t, err)
	yes, no := true, false
	gpus, err := hostlist.Parse("gpu[01-04]")
	require.NoError(t, err)
	addr := netip.MustParseAddr
	eth := &Policy{
		Line: 4, Name: "eth", Nodes: gpus, Priority: 10, VFs: 8, Link: Ethernet, MTU: 9000, Trust: &yes, SpoofCheck: &no,
		VLAN: 100, QoS: 3, Proto: "802.1ad", MinRate: 1000, MaxRate: 100000, RDMA: RDMAExclusive,
		NIC: Selector{"15b3", "101e", []string{"0000:86:00.0"}, []PFRange{{"ens1f0", 0, 3}, {"ens2", 0, -1}}},
	}
	ib := &Policy{Line: 21, Name: "ib", Priority: 50, VFs: 4, Link: InfiniBand, MTU: 4092, RDMA: RDMANone, NIC: Selector{Vendor: "15b3", Device: "101c"}}
	r0 := &Pool{
		Line: 28, Name: "r0", Subnet: netip.MustParsePrefix("10.1.0.0/24"), Gateway: addr("10.1.0.10"), Nodes: gpus, PerNode: 8,
		Ranges: []Range{
			{addr("10.1.0.128"), addr("10.1.0.254")}, // without broadcast
			{addr("10.1.0.1"), addr("10.1.0.20")},
		},
		Exclude: []Range{{addr("10.1.0.200"), addr("10.1.0.200")}, {addr("10.1.0.130"), addr("10.1.0.139")}},
		Routes:  []Route{{netip.MustParsePrefix("10.0.0.0/8"), addr("10.1.0.5")}, {To: netip.MustParsePrefix("192.168.0.0/16")}},
	}
	v6 := &Pool{
		Line: 38, Name: "r0v6", Subnet: netip.MustParsePrefix("fd00:1::/64"), Gateway: addr("fe80::1"), Directory: "/shared/gojail/r0v6",
		Ranges: []Range{{addr("fd00:1::1"), addr("fd00:1::ffff:ffff:ffff:ffff")}},
	}
	ctl := &Pool{
		Line: 44, Name: "ctl", Subnet: netip.MustParsePrefix("172.16.0.0/16"), Directory: "/shared/gojail/ctl", Conflict: &yes,
		Ranges: []Range{{addr("172.16.0.1"), addr("172.16.255.254")}},
	}
	assert.Equal(t, []*Policy{eth, ib}, c.Policies)
	assert.Equal(t, []*Pool{r0, v6, ctl}, c.Pools)
	assert.Equal(t, []*Rail{
		{Line: 50, Index: 0, Name: "rail0", Policy: eth, Pools: []*Pool{r0, v6}, GRES: "nic:rail0", VLAN: 200, Labels: []string{"rail0", "compute", "storage"}, Table: 400},
		{Line: 59, Index: 1, Name: "ib0", Policy: ib, PKey: 0x12, Labels: []string{"ib0", "compute"}, Table: 102},
	}, c.Rails)
	assert.Same(t, c.Policies[0], c.Rails[0].Policy)
	assert.Same(t, c.Pools[2], c.Control.Pool)
	assert.Equal(t, Control{ctl, "eth0", 1400}, c.Control)
	assert.Equal(t, Probe{Timeout: 50 * time.Millisecond, Tries: 2, Carrier: time.Minute}, c.Probe)
	assert.Equal(t, &UFM{"https://ufm.example.org:8443", "/etc/gojail/ufm.secret", "/etc/gojail/ufm.pem", false}, c.UFM)
	assert.Equal(t, "compute", c.Default)
	assert.EqualValues(t, 128-1-11+20-2, r0.CountAddresses())
	assert.Equal(t, []Range{{addr("10.1.0.1"), addr("10.1.0.4")}, {addr("10.1.0.6"), addr("10.1.0.9")}, {addr("10.1.0.11"), addr("10.1.0.20")}},
		r0.ListUsable()[3:], "without gateway and what routes lead to")
	assert.False(t, c.ProbesConflicts(r0), "as [probe] says")
	assert.True(t, c.ProbesConflicts(ctl))
	assert.Empty(t, c.ListWarnings())
}

func TestParseFillsInDefaults(t *testing.T) {
	c, err := Parse("", "")
	require.NoError(t, err)
	assert.Equal(t, &Config{Default: noNetwork, Probe: Probe{true, true, 200 * time.Millisecond, 3, 8 * time.Second}}, c)
	c, err = Parse("[ufm]\nurl = \"https://u\"\ncredentials = \"/c\"\n[[policy]]\nname = \"a\"\nnic.pf = [\"e\"]\nvfs = 1\nvlan = 5\n", "")
	require.NoError(t, err)
	assert.True(t, c.UFM.Required)
	assert.Equal(t, "802.1Q", c.Policies[0].Proto)
	assert.Equal(t, RDMANone, c.Policies[0].RDMA)
	assert.Equal(t, 50, c.Policies[0].Priority)
	assert.Nil(t, c.Policies[0].Trust)
}

func TestTagOfARail(t *testing.T) {
	for _, test := range []struct {
		policy    Policy
		vlan      int
		id, qos   int
		wantProto string
	}{
		{Policy{}, 0, 0, 0, ""},
		{Policy{VLAN: 5, QoS: 2, Proto: "802.1ad"}, 0, 5, 2, "802.1ad"},
		{Policy{VLAN: 5, QoS: 2, Proto: "802.1ad"}, 6, 6, 2, "802.1ad"},
		{Policy{QoS: 2}, 6, 6, 2, "802.1Q"},
	} {
		vlan, qos, proto := (&Rail{Policy: &test.policy, VLAN: test.vlan}).ResolveTag()
		assert.Equal(t, []any{test.id, test.qos, test.wantProto}, []any{vlan, qos, proto})
	}
}

func TestLabelled(t *testing.T) {
	names := func(c *Config, label string) []string {
		rails, err := c.FindRails(label)
		require.NoError(t, err)
		var names []string
		for _, r := range rails {
			names = append(names, r.Name)
		}
		return names
	}
	c, err := Parse(wholeText, "gpu01")
	require.NoError(t, err)
	assert.Equal(t, []string{"rail0", "ib0"}, names(c, "compute"))
	assert.Equal(t, []string{"rail0"}, names(c, "storage"))
	assert.Equal(t, []string{"ib0"}, names(c, "ib0"))
	assert.Empty(t, names(c, noNetwork))
	_, err = c.FindRails("comptue")
	assert.EqualError(t, err, `network "comptue" is unknown; known ones: rail0, compute, storage, ib0, none`)

	other, err := Parse(wholeText, "gpu05")
	require.NoError(t, err)
	assert.Equal(t, []string{"ib0"}, names(other, "compute"), "the policy of rail0 is for other nodes")
	assert.Len(t, c.FindDefaultRails(), 2)
	assert.Len(t, other.FindDefaultRails(), 1)
	none, err := Parse("default = \"r\"\n[[policy]]\nname = \"p\"\nvfs = 1\nlink = \"ib\"\nnic.pf = [\"e\"]\nnodes = \"a\"\n[[rail]]\nname = \"r\"\npolicy = \"p\"", "b")
	require.NoError(t, err)
	assert.Empty(t, none.FindDefaultRails())
	_, err = other.FindRails("rail0")
	assert.EqualError(t, err, `network "rail0" is not available on this node, gpu05; request nodes that have it`)

	_, err = (&Config{}).FindRails("x")
	assert.EqualError(t, err, `network "x" is unknown; known ones: none`)
}

func TestNothingIsEnumerated(t *testing.T) {
	text := `
[[pool]]
name     = "four"
subnet   = "10.0.0.0/8"
nodes    = "n[00001-65536],m[1-60000]"
per_node = 128
[[pool]]
name     = "six"
subnet   = "fd00::/16"
exclude  = ["fd00::-fd00:8000::"]
nodes    = "n[1-65536]x[1-16]"
per_node = 65536
`
	c, err := Parse(text, "n00001")
	require.NoError(t, err)
	assert.EqualValues(t, 1<<24-2, c.Pools[0].CountAddresses())
	assert.Equal(t, ^uint64(0), c.Pools[1].CountAddresses())
	assert.Less(t, testing.AllocsPerRun(1, func() { Parse(text, "n00001") }), 5000.0)
}

func TestLongestNames(t *testing.T) {
	long := strings.Repeat("a", nodeMost)
	_, err := Parse("", long)
	require.NoError(t, err)
	_, err = Parse("", long+"a")
	require.ErrorContains(t, err, "at most 64")
	long = strings.Repeat("a", altNameMost)
	_, err = parsePF(long+"#0-3", &Policy{VFs: 4})
	require.NoError(t, err)
	_, err = parsePF(long+"a#0-3", &Policy{VFs: 4})
	require.ErrorContains(t, err, "write the name of an interface")
}

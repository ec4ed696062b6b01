// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A valid file of two rails: policies start in line 1, pools in 9, rails in 17.
const (
	policyLines = `[[policy]]
name = "p"
nic.pf = ["ens1"]
vfs = 4
[[policy]]
name = "ib"
nic.pf = ["ib0"]
vfs = 4
`
	poolLines = `[[pool]]
name = "a"
subnet = "10.1.0.0/24"
directory = "/d/a"
[[pool]]
name = "b"
subnet = "10.2.0.0/24"
directory = "/d/b"
`
	railLines = `[[rail]]
name = "r0"
policy = "p"
pools = ["a"]
[[rail]]
name = "r1"
policy = "p"
pools = ["b"]
`
)

// refused are files with one mistake each, with the complete error.
var refused = map[string]struct{ text, want string }{
	// The text itself.
	"syntax":           {"default = ", "line 1: unexpected EOF; expected value; write KEY = VALUE, and text in quotes"},
	"unknown key":      {policyLines + "nodez = \"a\"", `line 9: policy 2: nodez: unknown key; did you mean nodes?`},
	"unknown earlier":  {"[[policy]]\nnaem = \"x\"\n" + policyLines, `line 2: policy 1: naem: unknown key; did you mean name?`},
	"unknown table":    {"[rial]\nname = \"x\"", `line 1: rial: unknown key; did you mean rail?`},
	"unknown in nic":   {"[[policy]]\nname = \"x\"\nnic = { vendr = \"15b3\" }", `line 3: policy 1: nic.vendr: unknown key; did you mean vendor?`},
	"unknown in route": {poolLines + "routes = [{ to = \"10.3.0.0/16\", gw = \"10.2.0.1\" }]", `line 9: pool 2: routes.gw: unknown key`},
	"upper case":       {"[[policy]]\nName = \"x\"\n" + policyLines, `line 2: policy 1: Name: unknown key; keys are written in lower case`},
	"wrong type":       {"[[policy]]\nvfs = \"4\"\n" + policyLines, `line 2: policy.vfs: is a text; write a whole number`},
	"not a table":      {"policy = 1", `line 1: policy: is a number; write a list`},
	"two brackets":     {"[[control]]\npool = \"x\"", `line 1: control: is a single table; write [control], with one bracket`},
	"one bracket":      {"[rail]\nname = \"x\"", `line 1: rail: is one table; write [[rail]], with two brackets, or a list in [ ]`},
	"written inline":   {"\npolicy = [\n  { name = \"a\", vfs = 0, nic = { pf = [\"e\"] } },\n]", `line 2: policy 1: vfs: 0: write a number from 1 to 65535`},

	// Names, labels and references.
	"no name":          {"[[policy]]\nvfs = 1", `line 1: policy 1: name: missing; each one needs a name`},
	"long name":        {"[[pool]]\nname = \"abcdefghijklmnop\"", `line 2: pool 1: name: "abcdefghijklmnop": a letter or digit, then letters, digits, '_' or '-', at most 15 in all`},
	"slash in name":    {"[[pool]]\nname = \"../x\"", `line 2: pool 1: name: "../x": a letter or digit, then letters, digits, '_' or '-', at most 15 in all`},
	"dot in name":      {"[[pool]]\nname = \"a.b\"", `line 2: pool 1: name: "a.b": a letter or digit, then letters, digits, '_' or '-', at most 15 in all`},
	"policy twice":     {policyLines + "[[policy]]\nname = \"p\"", `line 10: policy 3: name: duplicate name "p"; each name may be used once`},
	"pool twice":       {poolLines + "[[pool]]\nname = \"a\"", `line 10: pool 3: name: duplicate name "a"; each name may be used once`},
	"rail twice":       {policyLines + poolLines + railLines + "[[rail]]\nname = \"r0\"", `line 26: rail 3: name: duplicate name "r0"; each name may be used once`},
	"none as name":     {policyLines + "[[rail]]\nname = \"none\"", `line 10: rail 1: name: "none" means no network and cannot be a name`},
	"none as label":    {policyLines + poolLines + railLines + "labels = [\"none\"]", `line 25: rail 2: labels: "none" means no network and cannot be a label`},
	"bad label":        {policyLines + poolLines + railLines + "labels = [\"a,b\"]", `line 25: rail 2: labels: "a,b": a letter or digit, then letters, digits, '.', '_' or '-', at most 64 in all`},
	"label twice":      {policyLines + poolLines + railLines + "labels = [\"x\", \"x\"]", `line 25: rail 2: labels: duplicate "x"`},
	"label is a rail":  {policyLines + poolLines + railLines + "labels = [\"r0\"]", `line 25: rail 2: labels: "r0" is the name of another rail, which --jail-net=r0 stands for`},
	"default unknown":  {"default = \"x\"\n" + policyLines + poolLines + railLines, `line 1: default: unknown rail or label "x"; known ones: r0, r1, none`},
	"no policy":        {policyLines + "[[rail]]\nname = \"r\"", `line 9: rail 1: policy: missing; name the policy whose VFs the rail has: p, ib`},
	"unknown policy":   {policyLines + "[[rail]]\nname = \"r\"\npolicy = \"q\"", `line 11: rail 1: policy: unknown policy "q"; known ones: p, ib`},
	"no pool":          {policyLines + "[[rail]]\nname = \"r\"\npolicy = \"p\"", `line 9: rail 1: pools: missing; name the pools whose addresses the rail gives, such as ["r"] (only an InfiniBand rail, and one of whole cards with rdma, works without a pool)`},
	"unknown pool":     {policyLines + "[[rail]]\nname = \"r\"\npolicy = \"p\"\npools = [\"x\"]", `line 12: rail 1: pools: unknown pool "x"; known ones: none`},
	"two of a family":  {policyLines + poolLines + "[[rail]]\nname = \"r\"\npolicy = \"p\"\npools = [\"a\", \"b\"]", `line 20: rail 1: pools: "b": the rail has a pool of this family already; one of IPv4 and one of IPv6 at most`},
	"pool of two":      {policyLines + poolLines + strings.Replace(railLines, `"b"`, `"a"`, 1), `line 24: rail 2: pools: the pool "a" is already used by the rail "r0" of line 17; a job has an address on each rail, and each needs a subnet of its own`},
	"pool of control":  {policyLines + poolLines + railLines + "[control]\npool = \"b\"", `line 26: control.pool: the pool "b" is already used by the rail "r1" of line 21; a job has an address on each rail, and each needs a subnet of its own`},
	"pool in one rail": {policyLines + poolLines + "[[rail]]\nname = \"r\"\npolicy = \"p\"\npools = [\"a\", \"a\"]", `line 20: rail 1: pools: the pool "a" is already used by the rail "r" of line 17; a job has an address on each rail, and each needs a subnet of its own`},

	// Policies.
	"nodes":            {policyLines + "nodes = \"a[1-\"", `line 9: policy 2: nodes: "a[1-": a "[" without "]"`},
	"no vfs":           {"[[policy]]\nname = \"p\"\nnic.pf = [\"e\"]", `line 1: policy 1: vfs: missing; write how many VFs each PF gets, or whole = true for a card that is given as it is`},
	"vfs":              {"[[policy]]\nname = \"p\"\nvfs = 65536", `line 3: policy 1: vfs: 65536: write a number from 1 to 65535`},
	"priority":         {policyLines + "priority = 100", `line 9: policy 2: priority: 100: write a number from 0 to 99`},
	"link":             {policyLines + "link = \"ethernet\"", `line 9: policy 2: link: "ethernet": write "eth" or "ib", or leave it out for either`},
	"rdma":             {policyLines + "rdma = \"yes\"", `line 9: policy 2: rdma: "yes": write "exclusive", "shared" or "none"`},
	"small mtu":        {policyLines + "mtu = 67", `line 9: policy 2: mtu: 67: write a number from 68 to 65535`},
	"large mtu":        {policyLines + "mtu = 65536", `line 9: policy 2: mtu: 65536: write a number from 68 to 65535`},
	"large ib mtu":     {policyLines + "link = \"ib\"\nmtu = 4093", `line 10: policy 2: mtu: 4093: IP over InfiniBand takes 72 to 4092: 4 less than the link's MTU, as in 2044 or 4092`},
	"small ib mtu":     {policyLines + "link = \"ib\"\nmtu = 71", `line 10: policy 2: mtu: 71: IP over InfiniBand takes 72 to 4092: 4 less than the link's MTU, as in 2044 or 4092`},
	"ib trust":         {policyLines + "link = \"ib\"\ntrust = true", `line 10: policy 2: trust: an InfiniBand VF does not have this property; leave it out, or write link = "eth"`},
	"ib spoof check":   {policyLines + "link = \"ib\"\nspoof_check = false", `line 10: policy 2: spoof_check: an InfiniBand VF does not have this property; leave it out, or write link = "eth"`},
	"ib vlan":          {policyLines + "link = \"ib\"\nvlan = 4", `line 10: policy 2: vlan: an InfiniBand VF does not have this property; leave it out, or write link = "eth"`},
	"ib rate":          {policyLines + "link = \"ib\"\nmax_rate = 4", `line 10: policy 2: max_rate: an InfiniBand VF does not have this property; leave it out, or write link = "eth"`},
	"mac":              {policyLines + "mac = \"02:00:00:00:00:01\"", `line 9: policy 2: mac: unknown key`},
	"vlan":             {policyLines + "vlan = 4095", `line 9: policy 2: vlan: 4095: write a number from 0 to 4094`},
	"qos":              {policyLines + "vlan = 1\nqos = 8", `line 10: policy 2: qos: 8: write a number from 0 to 7`},
	"proto":            {policyLines + "vlan = 1\nproto = \"802.1p\"", `line 10: policy 2: proto: "802.1p": write "802.1Q" or "802.1ad"`},
	"qos, no vlan":     {policyLines + "qos = 3", `line 9: policy 2: qos: is transmitted in a VLAN tag only; set vlan as well, or leave it out`},
	"proto, no vlan":   {policyLines + "vlan = 0\nproto = \"802.1Q\"", `line 10: policy 2: proto: is transmitted in a VLAN tag only; set vlan as well, or leave it out`},
	"qos, rail's vlan": {strings.Replace(policyLines, "vfs = 4", "vfs = 4\nqos = 3", 1) + poolLines + railLines + "vlan = 5", `line 5: policy 1: qos: is transmitted in a VLAN tag only, and neither the policy nor its rail "r0" has a vlan`},
	"rate":             {policyLines + "max_rate = -1", `line 9: policy 2: max_rate: -1: write a number from 0 to 2147483647`},
	"min above max":    {policyLines + "min_rate = 20\nmax_rate = 10", `line 9: policy 2: min_rate: 20 is above max_rate, 10 (Mbit/s)`},
	"rdma modes":       {strings.ReplaceAll(policyLines+"rdma = \"shared\"", "[\"ens1\"]", "[\"ens1\"]\nrdma = \"exclusive\""), `line 10: policy 2: rdma: "shared", but "exclusive" in the policy "p" of line 1; a node has one mode for all its RDMA devices`},

	// Selectors.
	"no nic":         {"[[policy]]\nname = \"p\"\nvfs = 1", `line 1: policy 1: nic: selects nothing; write at least one of vendor, device, root and pf`},
	"empty nic":      {"[[policy]]\nname = \"p\"\nvfs = 1\nnic = { root = [] }", `line 4: policy 1: nic: selects nothing; write at least one of vendor, device, root and pf`},
	"vendor":         {"[[policy]]\nname = \"p\"\nvfs = 1\nnic = { vendor = \"Mellanox\" }", `line 4: policy 1: nic.vendor: "Mellanox": write 4 hexadecimal digits, as lspci -n shows them, such as "15b3"`},
	"device":         {"[[policy]]\nname = \"p\"\nvfs = 1\nnic = { device = \"0x101e\" }", `line 4: policy 1: nic.device: "0x101e": write 4 hexadecimal digits, as lspci -n shows them, such as "15b3"`},
	"root":           {"[[policy]]\nname = \"p\"\nvfs = 1\nnic = { root = [\"86:00.0\"] }", `line 4: policy 1: nic.root: "86:00.0": write the PCI address of a PF with its domain, such as "0000:86:00.0"`},
	"root twice":     {"[[policy]]\nname = \"p\"\nvfs = 1\nnic = { root = [\"0000:86:00.0\", \"0000:86:00.0\"] }", `line 4: policy 1: nic.root: duplicate "0000:86:00.0"`},
	"pf name":        {"[[policy]]\nname = \"p\"\nvfs = 1\nnic = { pf = [\"a/b\"] }", `line 4: policy 1: nic.pf: "a/b": write the name of an interface, or some of its VFs, such as "ens1f0#0-3"`},
	"pf backwards":   {"[[policy]]\nname = \"p\"\nvfs = 8\nnic = { pf = [\"e#3-2\"] }", `line 4: policy 1: nic.pf: "e#3-2": the range ends before it starts`},
	"pf beyond":      {"[[policy]]\nname = \"p\"\nvfs = 4\nnic = { pf = [\"e#0-4\"] }", `line 4: policy 1: nic.pf: "e#0-4": VF 4 does not exist: vfs = 4 makes VFs 0 to 3`},
	"pf twice":       {"[[policy]]\nname = \"p\"\nvfs = 4\nnic = { pf = [\"e#0-2\", \"e#2\"] }", `line 4: policy 1: nic.pf: "e#2": selects VFs that an earlier entry selects already`},
	"pf touches":     {"[[policy]]\nname = \"p\"\nvfs = 4\nnic = { pf = [\"e#2-3\", \"e#0-2\"] }", `line 4: policy 1: nic.pf: "e#0-2": selects VFs that an earlier entry selects already`},
	"two for a root": {policyLines + "nic.root = [\"0000:86:00.0\"]\n[[policy]]\nname = \"c\"\nvfs = 1\nnic.root = [\"0000:86:00.0\"]", `line 13: policy 3: nic.root: "0000:86:00.0" is selected by the policy "ib" of line 5 too; one PF needs one policy`},
	"two for a pf":   {policyLines + "[[policy]]\nname = \"c\"\nvfs = 4\nnic.pf = [\"ens1#2-3\"]", `line 12: policy 3: nic.pf: VFs of "ens1" are selected by the policy "p" of line 1 too; give each its range, such as "ens1#0-3"`},
	"two counts of VFs": {"[[policy]]\nname = \"a\"\nvfs = 4\nnic.pf = [\"e#0-1\"]\n[[policy]]\nname = \"b\"\nvfs = 8\nnic.pf = [\"e#2-7\"]",
		`line 7: policy 2: vfs: 8, but 4 in the policy "a" of line 1, for the same PF "e"; a PF has one number of VFs`},

	// Pools.
	"no subnet":         {"[[pool]]\nname = \"a\"", `line 1: pool 1: subnet: missing; write the network of the rail, such as "10.1.0.0/24"`},
	"subnet":            {"[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0\"", `line 3: pool 1: subnet: "10.1.0.0": write a network and its length, such as "10.1.0.0/24" or "fd00:1::/64"`},
	"mapped subnet":     {"[[pool]]\nname = \"a\"\nsubnet = \"::ffff:10.1.0.0/120\"", `line 3: pool 1: subnet: "::ffff:10.1.0.0/120": write a network and its length, such as "10.1.0.0/24" or "fd00:1::/64"`},
	"host bits":         {"[[pool]]\nname = \"a\"\nsubnet = \"172.16.11.0/16\"", `line 3: pool 1: subnet: "172.16.11.0/16" has host bits: that network is "172.16.0.0/16"; correct the address or the length`},
	"multicast":         {"[[pool]]\nname = \"a\"\nsubnet = \"224.0.0.0/4\"", `line 3: pool 1: subnet: "224.0.0.0/4" is not a network of hosts`},
	"everything":        {"[[pool]]\nname = \"a\"\nsubnet = \"0.0.0.0/0\"", `line 3: pool 1: subnet: "0.0.0.0/0" is not a network of hosts`},
	"gateway outside":   {poolLines + "gateway = \"10.1.0.1\"", `line 9: pool 2: gateway: "10.1.0.1" is not in the subnet 10.2.0.0/24, so that nothing could reach it`},
	"gateway is net":    {poolLines + "gateway = \"10.2.0.0\"", `line 9: pool 2: gateway: "10.2.0.0" is not a host address in 10.2.0.0/24`},
	"gateway is bcast":  {poolLines + "gateway = \"10.2.0.255\"", `line 9: pool 2: gateway: "10.2.0.255" is not a host address in 10.2.0.0/24`},
	"gateway text":      {poolLines + "gateway = \"10.2.0\"", `line 9: pool 2: gateway: "10.2.0": write an address`},
	"gateway family":    {poolLines + "gateway = \"fe80::1\"", `line 9: pool 2: gateway: "fe80::1" is not in the subnet 10.2.0.0/24, so that nothing could reach it`},
	"gateway zone":      {poolLines + "gateway = \"fe80::1%eth0\"", `line 9: pool 2: gateway: "fe80::1%eth0": write an address`},
	"gateway of /32":    {"[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.1/32\"\ngateway = \"10.1.0.1\"", `line 4: pool 1: gateway: "10.1.0.1": the subnet 10.1.0.1/32 has one address, and that is the job's; leave the gateway out, or use a shorter prefix`},
	"range outside":     {poolLines + "ranges = [\"10.2.0.200-10.2.1.10\"]", `line 9: pool 2: ranges: "10.2.0.200-10.2.1.10": is not in the subnet 10.2.0.0/24`},
	"range of lines":    {poolLines + "ranges = [\n  \"10.2.0.200\",\n  \"10.3.0.1\",\n]", `line 9: pool 2: ranges: "10.3.0.1": is not in the subnet 10.2.0.0/24`},
	"range backwards":   {poolLines + "ranges = [\"10.2.0.9-10.2.0.1\"]", `line 9: pool 2: ranges: "10.2.0.9-10.2.0.1": ends before it starts`},
	"range text":        {poolLines + "ranges = [\"10.2.0.9-20\"]", `line 9: pool 2: ranges: "10.2.0.9-20": write an address or a range, such as "10.0.0.10-10.0.0.99"`},
	"ranges meet":       {poolLines + "ranges = [\"10.2.0.5-10.2.0.9\", \"10.2.0.1-10.2.0.5\"]", `line 9: pool 2: ranges: 10.2.0.1-10.2.0.5 and 10.2.0.5-10.2.0.9 have addresses in common`},
	"exclude outside":   {poolLines + "exclude = [\"10.1.0.1\"]", `line 9: pool 2: exclude: "10.1.0.1": is not in the subnet 10.2.0.0/24`},
	"nothing left":      {poolLines + "ranges = [\"10.2.0.1\"]\ngateway = \"10.2.0.1\"", `line 5: pool 2: gives no address: nothing of 10.2.0.0/24 is left without the gateway, the routes' via and exclude`},
	"nothing but via":   {poolLines + "ranges = [\"10.2.0.9\"]\nroutes = [{ to = \"10.0.0.0/8\", via = \"10.2.0.9\" }]", `line 5: pool 2: gives no address: nothing of 10.2.0.0/24 is left without the gateway, the routes' via and exclude`},
	"route to":          {poolLines + "routes = [{ to = \"10.0.0.0\" }]", `line 9: pool 2: routes: to = "10.0.0.0": write a network, such as "10.0.0.0/8"`},
	"route host bits":   {poolLines + "routes = [{ to = \"10.1.0.0/8\" }]", `line 9: pool 2: routes: to = "10.1.0.0/8" has host bits: that network is "10.0.0.0/8"`},
	"route family":      {poolLines + "routes = [{ to = \"fd00::/8\" }]", `line 9: pool 2: routes: to = "fd00::/8" is not of the same family as the subnet 10.2.0.0/24`},
	"default route":     {poolLines + "routes = [{ to = \"0.0.0.0/0\", via = \"10.2.0.1\" }]", `line 9: pool 2: routes: to = "0.0.0.0/0" is the default route; write gateway = instead`},
	"own route":         {poolLines + "routes = [{ to = \"10.2.0.0/24\" }]", `line 9: pool 2: routes: to = "10.2.0.0/24" is the pool's own subnet, which needs no route`},
	"route twice":       {poolLines + "routes = [{ to = \"10.0.0.0/8\" }, { to = \"10.0.0.0/8\" }]", `line 9: pool 2: routes: duplicate to = "10.0.0.0/8"`},
	"via outside":       {poolLines + "routes = [{ to = \"10.0.0.0/8\", via = \"10.1.0.1\" }]", `line 9: pool 2: routes: via = "10.1.0.1" is not an address in the subnet 10.2.0.0/24`},
	"via of no family":  {poolLines + "routes = [{ to = \"10.0.0.0/8\", via = \"fe80::1\" }]", `line 9: pool 2: routes: via = "fe80::1" is not an address in the subnet 10.2.0.0/24`},
	"both shares":       {poolLines + "per_node = 1", `line 8: pool 2: directory: conflicts with nodes and per_node; write one or the other`},
	"no shares":         {"[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/24\"", `line 1: pool 1: no source of addresses; write nodes and per_node, or a directory that all nodes share`},
	"no nodes":          {"[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/24\"\nper_node = 1", `line 1: pool 1: nodes: missing; per_node needs the nodes that share the pool, in an order that never changes`},
	"no per_node":       {"[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/24\"\nnodes = \"n\"", `line 1: pool 1: per_node: missing; write how many addresses each of the nodes has`},
	"per_node":          {"[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/24\"\nnodes = \"n\"\nper_node = 0", `line 5: pool 1: per_node: 0: write a number from 1 to 65536`},
	"pool's nodes":      {"[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/24\"\nnodes = \"\"\nper_node = 1", `line 4: pool 1: nodes: the list of nodes is empty; name at least one`},
	"too small":         {"[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/24\"\ngateway = \"10.1.0.1\"\nnodes = \"n[1-127]\"\nper_node = 2", `line 6: pool 1: per_node: 127 nodes with 2 addresses each need 254, but the pool has 253; widen the subnet or the ranges`},
	"relative":          {"[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/24\"\ndirectory = \"d\"", `line 4: pool 1: directory: "d": must be an absolute path`},
	"unclean":           {"[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/24\"\ndirectory = \"/d/../e\"", `line 4: pool 1: directory: "/d/../e": write it as "/e"`},
	"root directory":    {"[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/24\"\ndirectory = \"/\"", `line 4: pool 1: directory: "/" is not allowed here`},
	"control character": {"[[pool]]\nname = \"a\"\nsubnet = \"10.1.0.0/24\"\ndirectory = \"/d\\u0007\"", `line 4: pool 1: directory: "/d\a": too long, or with a control character`},
	"subnets overlap":   {strings.Replace(poolLines, "10.2.0.0/24", "10.0.0.0/8", 1), `line 7: pool 2: subnet: 10.0.0.0/8 and 10.1.0.0/24 of the pool "a" of line 1 overlap; give each rail a subnet of its own`},
	"same addresses":    {strings.Replace(poolLines, "10.2.0.0/24", "10.1.0.0/24", 1), `line 5: pool 2: ranges: 10.1.0.1-10.1.0.254 and 10.1.0.1-10.1.0.254 of the pool "a" of line 1 have addresses in common; two machines would get the same one`},

	// Rails.
	"gres":            {policyLines + poolLines + railLines + "gres = \"nic:rail 0\"", `line 25: rail 2: gres: "nic:rail 0": write NAME or NAME:TYPE as in slurm.conf, such as "nic:rail0"`},
	"gres of GPUs":    {policyLines + poolLines + railLines + "gres = \"gpu:a100\"", `line 25: rail 2: gres: "gpu:a100": Slurm takes "gpu" for GPUs; use another name, such as "nic"`},
	"gres twice":      {policyLines + poolLines + strings.ReplaceAll(railLines, "policy =", "gres = \"nic\"\npolicy ="), `line 24: rail 2: gres: "nic" is already used by the rail "r0" of line 17; each rail needs its own`},
	"rail vlan":       {policyLines + poolLines + railLines + "vlan = -1", `line 25: rail 2: vlan: -1: write a number from 0 to 4094`},
	"ib rail vlan":    {policyLines + "link = \"ib\"\n[[rail]]\nname = \"r\"\npolicy = \"ib\"\nvlan = 1", `line 13: rail 1: vlan: the rail is InfiniBand, which has partitions instead; write pkey =`},
	"pkey":            {policyLines + "link = \"ib\"\n[[rail]]\nname = \"r\"\npolicy = \"ib\"\npkey = 0", `line 13: rail 1: pkey: 0x0: write a number from 0x0001 to 0x7fff`},
	"full pkey":       {policyLines + "link = \"ib\"\n[[rail]]\nname = \"r\"\npolicy = \"ib\"\npkey = 0x8012", `line 13: rail 1: pkey: 0x8012: write 0x0012; the highest bit is the membership and not part of the key`},
	"pkey, no ib":     {policyLines + poolLines + railLines + "pkey = 5", `line 25: rail 2: pkey: only InfiniBand has partitions, and the policy "p" does not set link = "ib"`},
	"table 254":       {policyLines + poolLines + railLines + "table = 254", `line 25: rail 2: table: 254 is one of the kernel's own routing tables (0, 253 to 255); write another number`},
	"table 0":         {policyLines + poolLines + railLines + "table = 0", `line 25: rail 2: table: 0 is one of the kernel's own routing tables (0, 253 to 255); write another number`},
	"table below 1":   {policyLines + poolLines + railLines + "table = -1", `line 25: rail 2: table: -1: write a number from 1 to 2147483647, but not 253 to 255`},
	"table twice":     {policyLines + poolLines + railLines + "table = 101", `line 25: rail 2: table: 101 is already used by the rail "r0" of line 17; each rail needs its own (default: 100 plus the rail's number)`},
	"default table":   {policyLines + poolLines + strings.Replace(railLines, "policy =", "table = 102\npolicy =", 1), `line 22: rail 2: table: 102 is already used by the rail "r0" of line 17; each rail needs its own (default: 100 plus the rail's number)`},
	"too many pkeys":  {manyRails(128), `line 645: rail 128: pkey: is the partition number 129 of this node with the default one; a port has room for 128`},
	"too many rails":  {manyRails(1001), `line 5006: rail 1001: more than 1000 rails`},
	"reserved tables": {strings.ReplaceAll(manyRails(153), "pkey", "#"), `line 766: rail 153: table: 253 is one of the kernel's own routing tables (0, 253 to 255); write another number`},

	// The rest.
	"control, no pool":  {"[control]\nmtu = 1500", `line 1: control: pool is missing: the addresses of jobs in the node's own network`},
	"control unknown":   {"[control]\npool = \"x\"", `line 2: control.pool: unknown pool "x"; known ones: none`},
	"control interface": {poolLines + "[control]\npool = \"a\"\ninterface = \"eth 0\"", `line 11: control.interface: "eth 0": write the name of an interface, such as "eth0", or leave it out`},
	"control mtu":       {poolLines + "[control]\npool = \"a\"\nmtu = 1", `line 11: control.mtu: 1: write a number from 68 to 65535`},
	"probe timeout":     {"[probe]\ntimeout = \"0s\"", `line 2: probe.timeout: "0s": write a time from "10ms" to "10s"`},
	"probe tries":       {"[probe]\ntries = 11", `line 2: probe.tries: 11: write a number from 1 to 10`},
	"probe carrier":     {"[probe]\ncarrier = \"long\"", `line 2: probe.carrier: "long": write a time from "0s" to "5m0s"`},
	"ufm, no url":       {"[ufm]\nca = \"/x\"", `line 1: ufm: url is missing, such as "https://ufm.example.org"`},
	"ufm http":          {"[ufm]\nurl = \"http://u\"", `line 2: ufm.url: "http://u": must be https://, because the password is sent there`},
	"ufm user":          {"[ufm]\nurl = \"https://admin:secret@u\"", `line 2: ufm.url: "...@u": write the scheme and the host, such as "https://ufm.example.org"; user and password go into the file credentials`},
	"ufm path":          {"[ufm]\nurl = \"https://u/ufmRest\"", `line 2: ufm.url: "https://u/ufmRest": write the scheme and the host, such as "https://ufm.example.org"; user and password go into the file credentials`},
	"ufm credentials":   {"[ufm]\nurl = \"https://u\"", `line 1: ufm: credentials is missing: the path of a file that only root can read, with "user:password"`},
	"ufm relative":      {"[ufm]\nurl = \"https://u\"\ncredentials = \"c\"", `line 3: ufm.credentials: "c": must be an absolute path`},
	"ufm ca":            {"[ufm]\nurl = \"https://u\"\ncredentials = \"/c\"\nca = \"/a//b\"", `line 4: ufm.ca: "/a//b": write it as "/a/b"`},
}

// manyRails returns n InfiniBand rails in different partitions.
func manyRails(n int) string {
	var b strings.Builder
	b.WriteString("[[policy]]\nname = \"p\"\nnic.vendor = \"15b3\"\nlink = \"ib\"\nvfs = 1\n")
	for i := range n {
		fmt.Fprintf(&b, "[[rail]]\nname = \"r%d\"\npolicy = \"p\"\nlabels = [\"all\"]\npkey = %d\n", i, i+1)
	}
	return b.String()
}

func TestParseRefuses(t *testing.T) {
	_, err := Parse(policyLines+poolLines+railLines, "n1")
	require.NoError(t, err)
	for name, test := range refused {
		t.Run(name, func(t *testing.T) {
			c, err := Parse(test.text, "n1")
			require.EqualError(t, err, test.want)
			assert.Nil(t, c)
		})
	}
	_, err = Parse("", "a/b")
	assert.EqualError(t, err, `node name "a/b": only letters, digits, '.', '_' and '-', at most 64`)
}

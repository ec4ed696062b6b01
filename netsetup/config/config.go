// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"
	"time"

	"github.com/gojail/gojail/internal/hostlist"
)

// DefaultPath is the path of network.toml.
const DefaultPath = "/etc/gojail/network.toml"

// Config is the checked content of network.toml, as one node sees it.
type Config struct {
	Path     string
	Node     string    // node for which the configuration was loaded; "": a node that no list names
	Policies []*Policy // all policies, in the file's order; AppliesTo selects those of a node
	Rails    []*Rail   // in the file's order
	Pools    []*Pool
	Control  Control
	Probe    Probe
	Default  string // label of the rails of a job without --jail-net; None: no rails
	UFM      *UFM   // nil: no [ufm] table
}

// noNetwork is the label for "no network of its own".
const noNetwork = "none"

// Policy is one [[policy]]: VFs that a node makes, with their properties, or cards that are given whole.
type Policy struct {
	Line       int
	Name       string
	Nodes      hostlist.List // empty: every node
	Priority   int           // 0-99, default 50; if two policies match a VF, the lower number wins
	NIC        Selector
	VFs        int      // per PF; 0 with Whole
	Whole      bool     // jobs get the card itself, or a VF that others made; the properties of VFs are then zero
	Link       LinkType // "": either
	MTU        int      // bytes; 0: unchanged
	Trust      *bool    // nil: unchanged; likewise below
	SpoofCheck *bool
	VLAN       int    // 0: none
	QoS        int    // 802.1p, 0-7
	Proto      string // "802.1Q" (default) or "802.1ad", "" with VLAN 0 unless a rail has a VLAN
	MinRate    int    // Mbit/s; 0: no limit
	MaxRate    int    // Mbit/s; 0: no limit
	RDMA       RDMAMode
}

// LinkType is the link layer of a PF.
type LinkType string

// The link layers.
const (
	Ethernet   LinkType = "eth"
	InfiniBand LinkType = "ib"
)

// RDMAMode is the mode in which network namespaces share RDMA devices (rdma-system(8)).
type RDMAMode string

// The RDMA modes: unchanged, each device in every network namespace, each device in one.
const (
	RDMANone      RDMAMode = "none"
	RDMAShared    RDMAMode = "shared"
	RDMAExclusive RDMAMode = "exclusive"
)

// Selector selects PFs. A PF matches if it matches every field that is set; an empty
// selector is an error.
type Selector struct {
	Vendor string    // PCI vendor, 4 hex digits, lower case
	Device string    // PCI device of the PF, likewise
	Root   []string  // PCI addresses of PFs, "0000:86:00.0"
	PF     []PFRange // names of PFs
}

// PFRange is a PF by its name and a range of its VFs, written "ens1f0" or "ens1f0#0-3".
type PFRange struct {
	Name        string
	First, Last int // VF numbers, inclusive; Last -1: all
}

// Rail is one [[rail]]: a network of the cluster, of which each job gets one VF.
type Rail struct {
	Line   int
	Index  int // position in the file, from 0; the VF is named net<Index+1> in a job
	Name   string
	Policy *Policy
	Pools  []*Pool  // at most one of IPv4 and one of IPv6
	GRES   string   // "nic:rail0": Slurm's name and type of the VFs; "" : not a GRES
	VLAN   int      // VLAN instead of the policy's; 0: the policy's, see ResolveTag
	PKey   uint16   // InfiniBand partition without the membership bit, 1-0x7ffe; 0: the default one
	Labels []string // names for --jail-net; the rail's own name is the first
	Table  int      // routing table; default 100 + Index + 1
}

// Pool is one [[pool]]: the addresses of a rail.
type Pool struct {
	Line   int
	Name   string
	Subnet netip.Prefix // masked: no host bits
	// in the file's order, without network and broadcast address; default: the whole subnet; see ListUsable
	Ranges  []Range
	Exclude []Range
	Gateway netip.Addr // invalid: none; an IPv6 gateway may be link-local
	Routes  []Route

	// An address is either derived from the node's position in Nodes and the VF's number,
	// without any service, or leased in Directory, which all nodes share.
	Nodes     hostlist.List
	PerNode   int    // addresses per node
	Directory string // absolute

	Conflict *bool // replaces conflict of [probe], see ProbesConflicts; some switches treat ARP probes as an attack
}

// Range is an inclusive range of addresses of one family.
type Range struct{ First, Last netip.Addr }

// Route is one additional route of a rail's table. It is also added to table main.
type Route struct {
	To  netip.Prefix
	Via netip.Addr // invalid: on the link
}

// Control is [control]: the interface with a job's default route.
type Control struct {
	Pool      *Pool  // pool of addresses in the node's own network; nil: no control interface
	Interface string // interface of the node that answers ARP for these addresses; "": that of the default route
	MTU       int    // bytes; 0: the MTU of Interface
}

// Probe is [probe]: the checks of the network before a job may use it.
type Probe struct {
	Conflict bool          // probe whether another machine has the address (RFC 5227)
	Gateway  bool          // probe whether the gateway answers
	Timeout  time.Duration // timeout of each probe
	Tries    int
	Carrier  time.Duration // timeout for the carrier of a link
}

// UFM is [ufm]: NVIDIA's fabric manager, which manages the partitions of GUIDs.
type UFM struct {
	URL         string // https://...
	Credentials string // path of a root-only file: "user:password"
	CA          string // path of a PEM file; "": the system's certificates
	Required    bool   // a job fails while UFM is unreachable (default); else the call is queued on disk
}

// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/netip"
	"time"

	"github.com/gojail/gojail/internal/hostlist"
)

// DefaultPath is where network.toml lies.
const DefaultPath = "/etc/gojail/network.toml"

// Config is network.toml, checked, as one node sees it.
type Config struct {
	Path     string
	Node     string    // the node that it was loaded for; "": one that no list of nodes names
	Policies []*Policy // all, in the file's order; Policy.Nodes tells which are this node's
	Rails    []*Rail   // in the file's order
	Pools    []*Pool
	Control  Control
	Probe    Probe
	Default  string // label of the rails that a job gets without --jail-net; None: nothing
	UFM      *UFM   // nil: no [ufm] table
}

// noNetwork is the label that stands for "no network of its own".
const noNetwork = "none"

// Policy is one [[policy]]: the VFs that a node makes, and their properties.
type Policy struct {
	Line       int
	Name       string
	Nodes      hostlist.List // empty: every node
	Priority   int           // 0-99, default 50; where two policies match one VF the lower number wins
	NIC        Selector
	VFs        int      // per PF
	Link       LinkType // "" is either
	MTU        int      // bytes; 0: left alone
	Trust      *bool    // nil: left alone; likewise below
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

// RDMAMode is how jobs see RDMA devices (rdma-system(8)).
type RDMAMode string

// RDMA devices are in every network namespace, in one each, or of no concern.
const (
	RDMANone      RDMAMode = "none"
	RDMAShared    RDMAMode = "shared"
	RDMAExclusive RDMAMode = "exclusive"
)

// Selector picks PFs: every field that is set must match; an empty one is an error.
type Selector struct {
	Vendor string    // PCI vendor, 4 hex digits, lower case
	Device string    // PCI device of the PF, likewise
	Root   []string  // PCI addresses of PFs, "0000:86:00.0"
	PF     []PFRange // names of PFs
}

// PFRange is "ens1f0" or "ens1f0#0-3": a PF by its name, and which of its VFs.
type PFRange struct {
	Name        string
	First, Last int // VF numbers, inclusive; Last -1: all
}

// Rail is one [[rail]]: one network of the cluster with one VF for each job.
type Rail struct {
	Line   int
	Index  int // place in the file, from 0: the VF becomes net<Index+1> in a job
	Name   string
	Policy *Policy
	Pools  []*Pool  // at most one of IPv4 and one of IPv6
	GRES   string   // "nic:rail0": Slurm's name and type of the VFs; "" : not a GRES
	VLAN   int      // overrides the policy's; 0: the policy's. Tag tells which one holds
	PKey   uint16   // InfiniBand partition without the membership bit, 1-0x7ffe; 0: the default one
	Labels []string // what --jail-net names; the rail's own name is the first
	Table  int      // routing table; default 100 + Index + 1
}

// Pool is one [[pool]]: the addresses of a rail.
type Pool struct {
	Line    int
	Name    string
	Subnet  netip.Prefix // masked: no host bits
	Ranges  []Range      // in the file's order, without network and broadcast; default: the whole subnet. Usable tells what may be given
	Exclude []Range
	Gateway netip.Addr // invalid: none; of IPv6 perhaps link-local
	Routes  []Route

	// Either the address is derived from the node's place in Nodes and the VF's
	// number, without any service; or leases lie in Directory, which all nodes share.
	Nodes     hostlist.List
	PerNode   int    // addresses per node
	Directory string // absolute

	Conflict *bool // overrides that of [probe], see Asks; some switches take the questions for an attack
}

// Range is an inclusive range of addresses of one family.
type Range struct{ First, Last netip.Addr }

// Route is one further route of a rail's table, and of main for what the rail reaches.
type Route struct {
	To  netip.Prefix
	Via netip.Addr // invalid: on the link
}

// Control is [control]: the interface that keeps a job's default route.
type Control struct {
	Pool      *Pool  // its addresses, of the node's own network; nil: no control interface is made
	Interface string // where the node answers ARP for them; "": where its default route leads
	MTU       int    // bytes; 0: that of Interface
}

// Probe is [probe]: what is asked of the network before a job may use it.
type Probe struct {
	Conflict bool          // does another machine have the address (RFC 5227)
	Gateway  bool          // does the gateway answer
	Timeout  time.Duration // for each question
	Tries    int
	Carrier  time.Duration // how long a link may take to come up
}

// UFM is [ufm]: NVIDIA's fabric manager, which puts GUIDs into partitions.
type UFM struct {
	URL         string // https://...
	Credentials string // path of a root-only file: "user:password"
	CA          string // path of a PEM file; "": the system's
	Required    bool   // a job fails while UFM is away (default); else the call is queued on disk
}

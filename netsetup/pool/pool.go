// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/gojail/gojail/netsetup/config"
)

// Owner is the key of an address: a second claim with the same key gets the same address,
// and only the owner can release it. The parts are up to 64 letters, digits and ._+-, and
// fit into one file name together.
type Owner struct {
	Cluster string // ClusterName of slurm.conf: two clusters may share a directory
	Job     string
	Node    string
	Rail    string
}

func (o Owner) String() string {
	return fmt.Sprintf("rail %s of job %s on %s", o.Rail, o.Job, o.Node)
}

// Claim is a request for an address.
type Claim struct {
	Owner
	VF   string // PCI address; "" for an interface without a VF
	Slot int    // index among the node's addresses in a derived pool: the VF's number within the rail, 0 to PerNode-1
}

// Lease is an address in a shared directory and its owner.
type Lease struct {
	Owner
	Addr netip.Addr
	VF   string
	Time time.Time // time of the lease, by the node's clock
}

// Quarantined is an address that another machine was seen to use.
type Quarantined struct {
	Addr netip.Addr
	MAC  net.HardwareAddr // hardware address of that machine
	Node string           // node that detected it
	Time time.Time
}

// Until returns the end of the quarantine.
func (q Quarantined) Until() time.Time { return q.Time.Add(quarantineTime) }

const (
	// quarantineTime is the time for which an address in conflict is not given.
	quarantineTime = time.Hour
	// maxConflicts is the number of addresses that one node may put into quarantine. A
	// node that detects more is in the wrong VLAN, or meets a router that answers for
	// every address (proxy ARP): it must not take the pool from all other nodes.
	maxConflicts = 8
)

var (
	// errFull means that no address is free.
	errFull = errors.New("no address is free")
	// ErrConflict means that another machine uses the address and no other can be given.
	ErrConflict = errors.New("another machine uses the address")
)

// Pool hands out the addresses of one [[pool]]. Its methods may be called by several
// goroutines and processes at once, and each may be repeated after a crash.
type Pool interface {
	// Acquire returns an address for the claim's owner alone.
	Acquire(ctx context.Context, c Claim) (netip.Addr, error)
	// ReportConflict records that mac answers for addr, which c had acquired, and returns
	// another address. It fails with ErrConflict or errFull if there is none.
	ReportConflict(ctx context.Context, c Claim, addr netip.Addr, mac net.HardwareAddr) (netip.Addr, error)
	// Release releases the owner's addresses. It is no error if the owner has none.
	Release(ctx context.Context, o Owner) error
	// Sweep releases this node's leases whose owner is not alive, and returns them. It calls
	// alive with the node's lock of the pool, so alive must not use the pool.
	Sweep(ctx context.Context, alive func(Owner) bool) ([]Lease, error)
}

// Open opens a pool as a node sees it: a derived pool if the configuration names nodes, else
// a shared one. state is a directory of this node for the pool's lock.
func Open(ctx context.Context, p *config.Pool, node, state string) (Pool, error) {
	addresses, err := newUsable(p)
	if err != nil {
		return nil, err
	}
	if p.Directory == "" {
		return newDerived(p, addresses, node)
	}
	return openShared(ctx, p, addresses, node, state)
}

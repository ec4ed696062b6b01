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

// Owner is the key of an address: who asks again gets the same one, and nobody else
// can release it. The parts are up to 64 letters, digits and ._+-,
// and fit into a file name together.
type Owner struct {
	Cluster string // ClusterName of slurm.conf: two clusters may share a directory
	Job     string
	Node    string
	Rail    string
}

func (o Owner) String() string {
	return fmt.Sprintf("rail %s of job %s on %s", o.Rail, o.Job, o.Node)
}

// Claim is what an address is asked for.
type Claim struct {
	Owner
	VF   string // PCI address; "" for an interface that has none
	Slot int    // which of the node's addresses in a derived pool: the VF's number within the rail, 0 to PerNode-1
}

// Lease is an address of a shared directory and who has it.
type Lease struct {
	Owner
	Addr netip.Addr
	VF   string
	Time time.Time // by the clock of the node
}

// Quarantined is an address that somebody else was seen to use.
type Quarantined struct {
	Addr netip.Addr
	MAC  net.HardwareAddr // who answered for it
	Node string           // where this was seen
	Time time.Time
}

// until is when the address may be given again.
func (q Quarantined) until() time.Time { return q.Time.Add(quarantineTime) }

const (
	// QuarantineTime is how long an address in conflict is not given.
	quarantineTime = time.Hour
	// maxConflicts is how many addresses one node may have in quarantine. One that
	// finds more is in the wrong VLAN, or meets a router that answers for every
	// address (proxy ARP): it must not take the pool away from all others.
	maxConflicts = 8
)

var (
	// ErrFull means that no address is free.
	errFull = errors.New("no address is free")
	// ErrConflict means that another machine uses the address and no other can be given.
	ErrConflict = errors.New("another machine uses the address")
)

// Pool hands out the addresses of one [[pool]]. Its methods may be called by several
// goroutines and processes at once, and each may be repeated after a crash.
type Pool interface {
	// Acquire gives the claim's owner an address of its own.
	Acquire(ctx context.Context, c Claim) (netip.Addr, error)
	// Conflict is told that mac answers for addr, which c had acquired. It gives
	// another address, or an error with ErrConflict or ErrFull in it.
	Conflict(ctx context.Context, c Claim, addr netip.Addr, mac net.HardwareAddr) (netip.Addr, error)
	// Release frees what the owner has; an owner that has nothing is no error.
	Release(ctx context.Context, o Owner) error
	// Sweep releases this node's leases whose owner is not alive and tells which. It
	// asks while it holds the node's lock of the pool, so alive must not use the pool.
	Sweep(ctx context.Context, alive func(Owner) bool) ([]Lease, error)
	// SweepAll is Sweep for the leases of all nodes. Only for nodes that are down:
	// what a node leases while another sweeps it may stay leased until the next SweepAll.
	SweepAll(ctx context.Context, alive func(Owner) bool) ([]Lease, error)
	// Leases lists the leases of all nodes, by address. What gojail did not write is
	// reported in the error, one line each, beside the leases that are right.
	Leases(ctx context.Context) ([]Lease, error)
	// Quarantine lists the addresses in quarantine, by address.
	Quarantine(ctx context.Context) ([]Quarantined, error)
	// Lift ends an address's quarantine.
	Lift(ctx context.Context, addr netip.Addr) error
}

// Open opens a pool as a node sees it: a derived one if it names nodes, else the
// shared directory. state is a directory of this node's own, for the pool's lock.
func Open(ctx context.Context, p *config.Pool, node, state string) (Pool, error) {
	addresses, err := usableOf(p)
	if err != nil {
		return nil, err
	}
	if p.Directory == "" {
		return newDerived(p, addresses, node)
	}
	return openShared(ctx, p, addresses, node, state)
}

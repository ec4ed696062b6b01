// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Options are the number of probes and the time between them. RFC 5227 and RFC 4862 wait 1
// to 2 s for each of 3 probes, for networks with slow bridges, which is too long for the
// start of a job.
type Options struct {
	Tries   int           // number of packets; 0: 3
	Timeout time.Duration // time to wait for an answer to each; 0: 200 ms
}

func (o Options) withDefaults() Options {
	if o.Tries == 0 {
		o.Tries = 3
	}
	if o.Timeout == 0 {
		o.Timeout = 200 * time.Millisecond
	}
	return o
}

var (
	// ErrNoCarrier means that the link is not running, so that a missing answer means nothing.
	ErrNoCarrier = errors.New("the link has no carrier")
	// ErrSilent means that no host answered.
	ErrSilent = errors.New("no answer")
	// ErrLinkType means that the link is neither Ethernet nor IPoIB.
	ErrLinkType = errors.New("neither Ethernet nor IPoIB")
)

// ConflictError is the error for an address that another machine has, or is about to assign.
type ConflictError struct {
	Address netip.Addr
	MAC     net.HardwareAddr // hardware address of the other machine
	asking  bool             // the other machine does not have the address yet, but probes for it
}

func (e *ConflictError) Error() string {
	claim := "has it"
	if e.asking {
		claim = "is about to take it"
	}
	return fmt.Sprintf("address %s is in use: %s %s; remove it from the pool's ranges, or find that machine", e.Address,
		e.MAC, claim)
}

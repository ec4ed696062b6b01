// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Options are how often and how long to ask. RFC 5227 and RFC 4862 wait 1 to 2 s
// for each of 3 probes, for networks with slow bridges; a job's start cannot.
type Options struct {
	Tries   int           // packets; 0: 3
	Timeout time.Duration // how long to listen after each; 0: 200 ms
}

func (o Options) orDefault() Options {
	if o.Tries == 0 {
		o.Tries = 3
	}
	if o.Timeout == 0 {
		o.Timeout = 200 * time.Millisecond
	}
	return o
}

var (
	// ErrNoCarrier: the link is not running, so that silence says nothing.
	ErrNoCarrier = errors.New("the link has no carrier")
	// ErrSilent: nobody answered.
	ErrSilent = errors.New("no answer")
	// ErrLinkType: neither Ethernet nor IPoIB.
	ErrLinkType = errors.New("neither Ethernet nor IPoIB")
)

// ConflictError: another machine has the address, or asks for it at this moment.
type ConflictError struct {
	Address netip.Addr
	MAC     net.HardwareAddr // of the other one
	asking  bool             // it does not have the address yet, but probes for it as well
}

func (e *ConflictError) Error() string {
	does := "has it"
	if e.asking {
		does = "is about to take it"
	}
	return fmt.Sprintf("address %s is in use: %s %s; take it out of the pool's ranges or find that machine", e.Address, e.MAC, does)
}

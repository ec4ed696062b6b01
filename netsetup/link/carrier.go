// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/netsetup/netns"
)

// NoCarrierError is the error for links that had no carrier when the context ended.
type NoCarrierError struct {
	Links []Link
	Err   error // cause of the context's end
}

func (e *NoCarrierError) Error() string {
	names := make([]string, len(e.Links))
	for i, l := range e.Links {
		names[i] = l.String()
	}
	return fmt.Sprintf("wait for the carrier of %s: no carrier: %v; check the cable, the switch port, the PF's link "+
		"and, on InfiniBand, the subnet manager", strings.Join(names, ", "), e.Err)
}

func (e *NoCarrierError) Unwrap() error { return e.Err }

// WaitCarrier waits until all of these links, which are up, are running. It waits for
// notifications of the kernel and uses no CPU time meanwhile. If ctx ends first, WaitCarrier
// fails with a NoCarrierError that lists the links without carrier.
func (n *Namespace) WaitCarrier(ctx context.Context, indexes ...int) error {
	var notices *nl.NetlinkSocket
	err := netns.RunInside(n.fd, func() (err error) {
		notices, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK)
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for a carrier: %w", err)
	}
	// The end of the call and that of ctx may both close the socket; os.File permits that.
	defer notices.Close()
	defer context.AfterFunc(ctx, notices.Close)()
	for {
		waiting, err := n.findNotRunning(indexes)
		if err != nil || len(waiting) == 0 {
			return err
		}
		// After each notification the links are read again; ENOBUFS means that notifications were lost.
		_, _, err = notices.Receive()
		switch {
		case ctx.Err() != nil:
			return &NoCarrierError{waiting, context.Cause(ctx)}
		case err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for a carrier: %w", err)
		}
	}
}

func (n *Namespace) findNotRunning(indexes []int) ([]Link, error) {
	var waiting []Link
	for _, index := range indexes {
		l, err := n.FindByIndex(index)
		if err != nil {
			return nil, err
		}
		if !l.Running {
			waiting = append(waiting, l)
		}
	}
	return waiting, nil
}

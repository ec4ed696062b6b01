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

// NoCarrierError: links had no carrier when the time was over.
type NoCarrierError struct {
	Links []Link
	Err   error // of the context
}

func (e *NoCarrierError) Error() string {
	names := make([]string, len(e.Links))
	for i, l := range e.Links {
		names[i] = l.String()
	}
	return fmt.Sprintf("wait for the carrier of %s: none: %v; look at the cable, the switch port, the PF's link and, on InfiniBand, the subnet manager", strings.Join(names, ", "), e.Err)
}

func (e *NoCarrierError) Unwrap() error { return e.Err }

// WaitCarrier waits until all of these links, which are up, are running. It
// listens to the kernel's notices and takes no time of the processor meanwhile.
// When ctx ends it returns a NoCarrierError with those that are not.
func (n *Namespace) WaitCarrier(ctx context.Context, indexes ...int) error {
	var notices *nl.NetlinkSocket
	err := netns.Inside(n.fd, func() (err error) {
		notices, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK)
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for a carrier: %w", err)
	}
	// The socket is closed by whoever comes first; os.File bears both.
	defer notices.Close()
	defer context.AfterFunc(ctx, notices.Close)()
	for {
		waiting, err := n.notRunning(indexes)
		if err != nil || len(waiting) == 0 {
			return err
		}
		// Any notice makes us look again; ENOBUFS says that some were lost.
		_, _, err = notices.Receive()
		switch {
		case ctx.Err() != nil:
			return &NoCarrierError{waiting, context.Cause(ctx)}
		case err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for a carrier: %w", err)
		}
	}
}

func (n *Namespace) notRunning(indexes []int) ([]Link, error) {
	var waiting []Link
	for _, index := range indexes {
		l, err := n.ByIndex(index)
		if err != nil {
			return nil, err
		}
		if !l.Running {
			waiting = append(waiting, l)
		}
	}
	return waiting, nil
}

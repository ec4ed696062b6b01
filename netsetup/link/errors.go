// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

var (
	// ErrNotFound: no link, or no RDMA device, of that name, index or PCI address in the namespace.
	ErrNotFound = errors.New("not there")
	// ErrNameTaken: another link has the name, or has it as an alternative name.
	ErrNameTaken = errors.New("the name is taken")
	// ErrForwarding: the kernel does not forward packets between the control interface and the network.
	errForwarding = errors.New("forwarding is off")
	// ErrRDMABusy: the RDMA mode cannot change while other network namespaces exist.
	ErrRDMABusy = errors.New("other network namespaces exist")
	// ErrRDMAShared: RDMA devices can be moved in exclusive mode only.
	ErrRDMAShared = errors.New("RDMA devices are shared by all network namespaces")
)

// failed is an error of the kernel's as one line: what was asked, the error, what to do. nil for nil.
func failed(err error, asked string, args ...any) error {
	if err == nil {
		return nil
	}
	text := fmt.Sprintf(asked, args...)
	do := ""
	switch {
	case errors.Is(err, unix.EPERM):
		do = "; CAP_NET_ADMIN is needed in the namespace, or the driver forbids it while the VF is not trusted"
	case errors.Is(err, unix.EOPNOTSUPP):
		do = "; the driver cannot do this, so leave it out of network.toml"
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		do = "; the link is gone: was it moved or its driver unbound?"
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EAGAIN):
		do = "; the driver is busy, try again"
	case errors.Is(err, unix.ENETDOWN):
		do = "; the link is down, set it up first"
	}
	return fmt.Errorf("%s: %w%s", text, err, do)
}

// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

var (
	// ErrNotFound means that the namespace has no link or RDMA device of that name, index or PCI address.
	ErrNotFound = errors.New("not found")
	// ErrNameTaken means that the name is a name or an alternative name of another link.
	ErrNameTaken = errors.New("the name is taken")
	// errForwarding means that the kernel does not forward packets between the control interface and the network.
	errForwarding = errors.New("forwarding is off")
	// ErrRDMABusy means that the RDMA mode cannot change while other network namespaces exist.
	ErrRDMABusy = errors.New("other network namespaces exist")
	// ErrRDMAShared means that RDMA devices cannot be moved, which needs the exclusive mode.
	ErrRDMAShared = errors.New("RDMA devices are shared by all network namespaces")
)

// explainError returns an error of the kernel as one line: the operation, the error, what to
// do. It returns nil if err is nil.
func explainError(err error, asked string, args ...any) error {
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
		do = "; the link is gone: it was moved, or its driver was unbound"
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EAGAIN):
		do = "; the driver is busy, try again"
	case errors.Is(err, unix.ENETDOWN):
		do = "; the link is down, set it up first"
	}
	return fmt.Errorf("%s: %w%s", text, err, do)
}

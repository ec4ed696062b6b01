// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/binary"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
)

// ProbeZygote asks the zygote of a jail's template whether it serves, by a connection that ends without a request. The
// spare passes the connection on, and the zygote forks a process, which replies at once and then ends. So a reply
// proves that the spare, the zygote and its fork work, and the spare stays. The error is ErrStuck if there is no reply
// in time.
func (s *State) ProbeZygote(jail string, patience time.Duration) error {
	fd, err := s.connectTo(jail, contract.ZygoteSocket, patience)
	if err != nil {
		return describeStuck(err, "its zygote")
	}
	defer unix.Close(fd)
	if err := unix.Shutdown(fd, unix.SHUT_WR); err != nil {
		return err
	}
	reply := make([]byte, 4096)
	n, err := unix.Read(fd, reply)
	if err != nil {
		return describeStuck(err, "its zygote")
	}
	if n < 4 || binary.NativeEndian.Uint32(reply) != contract.Version {
		return fmt.Errorf("its zygote ended, or is of another gojail version; if that lasts, run: gojail reload %s",
			jail)
	}
	return nil
}

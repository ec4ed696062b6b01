// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/tests/vm"
)

// setUpNetwork sets lo and dummy0 up (netdevice(7)), which the module dummy creates. The
// command of the order sets up the cards.
func setUpNetwork() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	defer unix.Close(s)
	address, err := unix.NewIfreq("dummy0")
	if err != nil {
		return err
	}
	if err := address.SetInet4Addr(net.ParseIP(vm.Address).To4()); err != nil {
		return err
	}
	if err := unix.IoctlIfreq(s, unix.SIOCSIFADDR, address); err != nil {
		return fmt.Errorf("give dummy0 the address %s: %w", vm.Address, err)
	}
	for _, name := range []string{"lo", "dummy0"} {
		flags, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		flags.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, flags); err != nil {
			return fmt.Errorf("set %s up: %w", name, err)
		}
	}
	return nil
}

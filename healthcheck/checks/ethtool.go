// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What <linux/ethtool.h> has and x/sys/unix has not.
const (
	ethtoolCountersSet = 1  // ETH_SS_STATS
	ethtoolNameSize    = 32 // ETH_GSTRING_LEN
)

// ethtoolCounters are what ethtool -S shows of a network interface of this network namespace.
func ethtoolCounters(netdev string) (map[string]uint64, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(socket)
	e := binary.NativeEndian
	info := make([]byte, 20) // struct ethtool_sset_info: command, reserved, mask of sets; the count of the one
	e.PutUint32(info, unix.ETHTOOL_GSSET_INFO)
	e.PutUint64(info[8:], 1<<ethtoolCountersSet)
	if err := ethtool(socket, netdev, info); err != nil {
		return nil, err
	}
	if e.Uint64(info[8:]) == 0 {
		return nil, nil // the driver has none
	}
	// The driver may have more of them by now, and the kernel asks for no room: have plenty.
	room := 2*int(e.Uint32(info[16:])) + 1024
	names := make([]byte, 12+room*ethtoolNameSize) // struct ethtool_gstrings: command, set, count
	e.PutUint32(names, unix.ETHTOOL_GSTRINGS)
	e.PutUint32(names[4:], ethtoolCountersSet)
	if err := ethtool(socket, netdev, names); err != nil {
		return nil, err
	}
	values := make([]byte, 8+room*8) // struct ethtool_stats: command, count
	e.PutUint32(values, unix.ETHTOOL_GSTATS)
	if err := ethtool(socket, netdev, values); err != nil {
		return nil, err
	}
	count := e.Uint32(names[8:])
	if count != e.Uint32(values[4:]) || int(count) > room {
		return nil, fmt.Errorf("the counters of %s have just changed", netdev)
	}
	all := map[string]uint64{}
	for i := range int(count) {
		name := unix.ByteSliceToString(names[12+i*ethtoolNameSize:][:ethtoolNameSize])
		all[name] = e.Uint64(values[8+i*8:])
	}
	return all, nil
}

// ethtool has the kernel answer a request in its own place: see netdevice(7).
func ethtool(socket int, netdev string, request []byte) error {
	ifreq := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&request[0])}
	if copy(ifreq.name[:], netdev) == unix.IFNAMSIZ {
		return unix.ENAMETOOLONG
	}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifreq)))
	if errno != 0 {
		return fmt.Errorf("ethtool %s: %w", netdev, errno)
	}
	return nil
}

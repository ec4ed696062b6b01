// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Constants of <linux/ethtool.h> that golang.org/x/sys/unix does not define.
const (
	ethtoolCountersSet = 1  // ETH_SS_STATS
	ethtoolNameSize    = 32 // ETH_GSTRING_LEN
)

// readEthtoolCounters returns the counters that ethtool -S shows for a network interface of
// this network namespace.
func readEthtoolCounters(netdev string) (map[string]uint64, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(socket)
	e := binary.NativeEndian
	// struct ethtool_sset_info: command, reserved, mask of sets, and the size of the requested set
	info := make([]byte, 20)
	e.PutUint32(info, unix.ETHTOOL_GSSET_INFO)
	e.PutUint64(info[8:], 1<<ethtoolCountersSet)
	if err := runEthtool(socket, netdev, info); err != nil {
		return nil, err
	}
	if e.Uint64(info[8:]) == 0 {
		return nil, nil // the driver has no counters
	}
	// The driver may have added counters since, and the kernel does not check the buffer's
	// size: allocate spare room.
	room := 2*int(e.Uint32(info[16:])) + 1024
	names := make([]byte, 12+room*ethtoolNameSize) // struct ethtool_gstrings: command, set, count
	e.PutUint32(names, unix.ETHTOOL_GSTRINGS)
	e.PutUint32(names[4:], ethtoolCountersSet)
	if err := runEthtool(socket, netdev, names); err != nil {
		return nil, err
	}
	values := make([]byte, 8+room*8) // struct ethtool_stats: command, count
	e.PutUint32(values, unix.ETHTOOL_GSTATS)
	if err := runEthtool(socket, netdev, values); err != nil {
		return nil, err
	}
	count := e.Uint32(names[8:])
	if count != e.Uint32(values[4:]) || int(count) > room {
		return nil, fmt.Errorf("the set of counters of %s has just changed", netdev)
	}
	all := map[string]uint64{}
	for i := range int(count) {
		name := unix.ByteSliceToString(names[12+i*ethtoolNameSize:][:ethtoolNameSize])
		all[name] = e.Uint64(values[8+i*8:])
	}
	return all, nil
}

// runEthtool issues an ethtool request, which the kernel answers in place (netdevice(7)).
func runEthtool(socket int, netdev string, request []byte) error {
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

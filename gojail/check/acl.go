// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/binary"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// admitsSome reports whether some users can execute a file whose mode is closed to others: those of its group, or those
// whom an access control list names (acl(5), nfs4_acl(5)). With a list of POSIX, the mode has its mask in the place of
// the group.
func admitsSome(fd int, st *unix.Stat_t) bool {
	list := make([]byte, 64<<10)                // XATTR_SIZE_MAX of linux/limits.h
	path := fmt.Sprintf("/proc/self/fd/%d", fd) // fgetxattr(2) refuses a path descriptor
	if _, err := unix.Getxattr(path, "system.posix_acl_access", list); st.Mode&0o010 != 0 &&
		(st.Gid != 0 || err == nil) {
		return true
	}
	n, err := unix.Getxattr(path, "system.nfs4_acl", list)
	return err == unix.E2BIG || err == unix.ERANGE || err == nil && admitsNamed(list[:n])
}

// admitsNamed reports whether a list of NFSv4 allows a named user or group to execute (RFC 8881, section 6.2.1, in
// XDR): each entry has a type, flags, a mask and a name. A list that cannot be read counts as one that does.
func admitsNamed(list []byte) bool {
	const head, allow, execute = 16, 0, 0x20
	if len(list) < 4 {
		return true
	}
	count, list := binary.BigEndian.Uint32(list), list[4:]
	for range count {
		if len(list) < head {
			return true
		}
		kind, mask, size := binary.BigEndian.Uint32(list), binary.BigEndian.Uint32(list[8:]),
			int(binary.BigEndian.Uint32(list[12:]))
		padded := head + (size+3)&^3
		if size > len(list) || padded > len(list) {
			return true
		}
		special := slices.Contains([]string{"OWNER@", "GROUP@", "EVERYONE@"}, string(list[head:head+size]))
		if kind == allow && mask&execute != 0 && !special {
			return true
		}
		list = list[padded:]
	}
	return false
}

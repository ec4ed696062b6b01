// SPDX-License-Identifier: Apache-2.0

package rmtree

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// makeWritable makes a btrfs subvolume writable, which its owner, any user, may have made read-only. If
// that fails, the removal reports the reason.
func makeWritable(dir *os.File) {
	const subvolume, setFlags = 256, 0x4008941a // BTRFS_FIRST_FREE_OBJECTID, BTRFS_IOC_SUBVOL_SETFLAGS (linux/btrfs.h)
	var st unix.Stat_t
	var fs unix.Statfs_t
	if unix.Fstat(int(dir.Fd()), &st) != nil || st.Ino != subvolume || unix.Fstatfs(int(dir.Fd()), &fs) != nil || fs.Type != unix.BTRFS_SUPER_MAGIC {
		return
	}
	var none uint64
	unix.Syscall(unix.SYS_IOCTL, dir.Fd(), setFlags, uintptr(unsafe.Pointer(&none)))
}

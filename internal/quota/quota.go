// SPDX-License-Identifier: Apache-2.0

// Package quota removes the project quotas of jobs that ended, and reports whether a file system enforces
// them. The launcher and the plugin set them (spank/common/quota.c).
package quota

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/rootpath"
)

// ForgetUnusedQuotas removes the limits of jobs without files on the file system of dir, since its quota
// file would grow with every job. A limit stays while files exist: a descriptor of an ended job's file
// may have been passed to another job (unix(7), SCM_RIGHTS). It does nothing where there are no quotas.
//
// The process that removes a job's last file calls it, and that is one of two. One is written in Go: it empties the
// trash after the job, and ends what `gojail run` started. The other is the plugin's job_epilog, which removes
// an empty /tmp itself and starts no Go for that (quota_forget_unused in spank/common/quota.c):
// without a limit that ends there, the quota file of a node whose jobs leave nothing would grow with each.
func ForgetUnusedQuotas(dir *os.File) {
	const getNextQuota, setQuota, limits = 0x800009<<8 | 2, 0x800008<<8 | 2, 5 // Q_GETNEXTQUOTA, Q_SETQUOTA, PRJQUOTA; QIF_LIMITS (linux/quota.h)
	const space, inodes, id = 16, 40, 68                                       // of struct if_nextdqblk
	for project := uint64(contract.ProjectOfRuns); project <= math.MaxUint32; {
		var next, none [72]byte
		if _, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, dir.Fd(), getNextQuota, uintptr(project), uintptr(unsafe.Pointer(&next)), 0, 0); errno != 0 {
			return // ENOENT: no further quotas
		}
		found := binary.NativeEndian.Uint32(next[id:])
		if binary.NativeEndian.Uint64(next[space:]) == 0 && binary.NativeEndian.Uint64(next[inodes:]) == 0 && hasLimit(next[:]) {
			binary.NativeEndian.PutUint32(none[64:], limits)
			unix.Syscall6(unix.SYS_QUOTACTL_FD, dir.Fd(), setQuota, uintptr(found), uintptr(unsafe.Pointer(&none)), 0, 0)
		}
		project = max(uint64(found), project) + 1
	}
}

// hasLimit reports whether a struct if_dqblk has a hard limit of space or of inodes.
func hasLimit(quota []byte) bool {
	return binary.NativeEndian.Uint64(quota) != 0 || binary.NativeEndian.Uint64(quota[24:]) != 0
}

// TakeAnyProject lets a directory accept files of other projects: rename(2) moves no file between
// projects, and the owner of a directory has chosen its project (ioctl_fsxattr, linux/fs.h).
func TakeAnyProject(dir *os.File) {
	const get, set, inherit = 0x801c581f, 0x401c5820, 0x200
	var attributes [28]byte // struct fsxattr
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), get, uintptr(unsafe.Pointer(&attributes))); errno != 0 {
		return // a file system without projects
	}
	if flags := binary.NativeEndian.Uint32(attributes[:]); flags&inherit != 0 {
		binary.NativeEndian.PutUint32(attributes[:], flags&^inherit)
		unix.Syscall(unix.SYS_IOCTL, dir.Fd(), set, uintptr(unsafe.Pointer(&attributes)))
	}
}

// Enforced returns nil if the file system of dir, which need not exist, enforces limits of directories,
// or else the reason. Linux 5.14 (quotactl_fd(2)).
func Enforced(dir string) error {
	const getState = 0x5808<<8 | 2 // Q_XGETQSTATV, PRJQUOTA (linux/dqblk_xfs.h)
	for ; !rootpath.Exists(dir) && dir != "/"; dir = filepath.Dir(dir) {
	}
	f, err := rootpath.OpenDirectory(unix.AT_FDCWD, dir, 0)
	if err != nil {
		return fmt.Errorf("tmp_size: cannot open %s: %w", dir, err)
	}
	defer f.Close()
	var state [192]byte // struct fs_quota_statv
	state[0] = 1        // its version
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, f.Fd(), getState, 0, uintptr(unsafe.Pointer(&state)), 0, 0)
	const enforced = 1 << 5 // FS_QUOTA_PDQ_ENFD
	if errno != 0 || binary.NativeEndian.Uint16(state[2:])&enforced == 0 {
		return fmt.Errorf("tmp_size: the file system of %s has no project quotas", dir)
	}
	return nil
}

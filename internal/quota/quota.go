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

// ForgetUnusedQuotas removes the limits of jobs without files on the file system of dir: otherwise its quota file would
// grow with every job. A limit stays while files exist, because another job may have been passed a descriptor of an
// ended job's file (unix(7), SCM_RIGHTS). It does nothing if there are no quotas.
//
// The process that removes a job's last file forgets the limit. There are two such processes. One is written in Go: it
// empties the trash after the job, and ends the sandboxes of `gojail run`. The other is the plugin's job_epilog, which
// removes an empty /tmp itself and starts no Go for that (quota_forget_unused in spank/common/quota.c): otherwise, the
// quota file of a node whose jobs leave nothing would grow with each of them.
func ForgetUnusedQuotas(dir *os.File) {
	for project := uint64(contract.ProjectOfRuns); project <= math.MaxUint32; {
		var next block
		if errno := quotactl(dir.Fd(), getNextQuota, uint32(project), &next); errno != 0 {
			return // ENOENT: no further quotas
		}
		found := binary.NativeEndian.Uint32(next[offsetID:])
		if binary.NativeEndian.Uint64(next[offsetSpace:]) == 0 && !hasInodes(&next) && hasLimit(&next) {
			forgetLimit(dir.Fd(), found, next)
		}
		project = max(uint64(found), project) + 1
	}
}

// forgetLimit removes the limit of a project that had no files when it was found. A job of the same number may have
// begun meanwhile and taken over the limit (quota_set_limit in spank/common/quota.c): then forgetLimit restores it.
func forgetLimit(dir uintptr, project uint32, found block) {
	const limits = 5 // QIF_LIMITS
	var none, now block
	binary.NativeEndian.PutUint32(none[offsetValid:], limits)
	if quotactl(dir, setQuota, project, &none) != 0 || quotactl(dir, getQuota, project, &now) != 0 {
		return
	}
	if hasInodes(&now) && !hasLimit(&now) {
		binary.NativeEndian.PutUint32(found[offsetValid:], limits)
		quotactl(dir, setQuota, project, &found)
	}
}

// Commands of linux/quota.h, for PRJQUOTA.
const (
	getQuota     = 0x800007<<8 | 2
	setQuota     = 0x800008<<8 | 2
	getNextQuota = 0x800009<<8 | 2
)

// block is a struct if_dqblk or, if offsetID is used, a struct if_nextdqblk (linux/quota.h).
type block [72]byte

const offsetSpace, offsetInodes, offsetValid, offsetID = 16, 40, 64, 68

// quotactl is quotactl_fd(2); tests replace it.
var quotactl = func(dir, command uintptr, project uint32, b *block) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, dir, command, uintptr(project), uintptr(unsafe.Pointer(b)), 0, 0)
	return errno
}

func hasInodes(b *block) bool { return binary.NativeEndian.Uint64(b[offsetInodes:]) != 0 }

// hasLimit reports whether there is a hard limit of space or of inodes.
func hasLimit(b *block) bool {
	return binary.NativeEndian.Uint64(b[:]) != 0 || binary.NativeEndian.Uint64(b[24:]) != 0
}

// TakeAnyProject lets a directory accept files of other projects. Otherwise rename(2) moves no file between projects,
// and the owner of a directory has chosen its project (ioctl_fsxattr, linux/fs.h).
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

// ErrOldKernel is the reason if the kernel has no quotactl_fd(2), or no quotas at all.
var ErrOldKernel = fmt.Errorf("tmp_size: this node's kernel has no quotas of directories: quotactl_fd: %w", unix.ENOSYS)

// Enforced returns nil if the file system of dir, which need not exist, enforces limits of directories, or else the
// reason why it does not. Linux 5.14 (quotactl_fd(2)).
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
	if errno == unix.ENOSYS {
		return ErrOldKernel
	}
	if errno != 0 || binary.NativeEndian.Uint16(state[2:])&enforced == 0 {
		return fmt.Errorf("tmp_size: the file system of %s has no project quotas", dir)
	}
	return nil
}

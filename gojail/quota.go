// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

func projectOf(job string) uint32 {
	base := uint32(projectOfJobs)
	if pid, run := strings.CutPrefix(job, "run-"); run {
		job, base = pid, projectOfRuns
	}
	n, _ := strconv.ParseUint(job, 10, 64)
	return base ^ uint32(n)
}

// forgetUnusedQuotas takes the limits of jobs that have nothing left on the file system of dir, whose quota
// file would else grow with every job. A limit lasts as long as there is something to be limited: a descriptor of an
// ended job's file may have been passed to another job (unix(7), SCM_RIGHTS). Where there are no quotas, nothing happens.
func forgetUnusedQuotas(dir *os.File) {
	const getNextQuota, setQuota, limits = 0x800009<<8 | 2, 0x800008<<8 | 2, 5 // Q_GETNEXTQUOTA, Q_SETQUOTA, PRJQUOTA; QIF_LIMITS (linux/quota.h)
	const space, inodes, id = 16, 40, 68                                       // of struct if_nextdqblk
	for project := uint64(projectOfRuns); project <= math.MaxUint32; {
		var next, none [72]byte
		if _, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, dir.Fd(), getNextQuota, uintptr(project), uintptr(unsafe.Pointer(&next)), 0, 0); errno != 0 {
			return // ENOENT: that was the last
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

// takeAnyProject lets a directory take what is of another project: rename(2) moves nothing from
// one project into another, and who owns a directory has chosen its own (ioctl_fsxattr, linux/fs.h).
func takeAnyProject(dir *os.File) {
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

// quotaEnforced tells why the file system that dir is, or would be, on does not
// hold directories to a limit. Linux 5.14 (quotactl_fd).
func quotaEnforced(dir string) error {
	const getState = 0x5808<<8 | 2 // Q_XGETQSTATV, PRJQUOTA (linux/dqblk_xfs.h)
	for ; !exists(dir) && dir != "/"; dir = filepath.Dir(dir) {
	}
	f, err := openDirectory(unix.AT_FDCWD, dir, 0)
	if err != nil {
		return fmt.Errorf("tmp_size: %s cannot be opened: %w", dir, err)
	}
	defer f.Close()
	var state [192]byte // struct fs_quota_statv
	state[0] = 1        // its version
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, f.Fd(), getState, 0, uintptr(unsafe.Pointer(&state)), 0, 0)
	const enforced = 1 << 5 // FS_QUOTA_PDQ_ENFD
	if errno != 0 || binary.NativeEndian.Uint16(state[2:])&enforced == 0 {
		return fmt.Errorf("tmp_size: the file system of %s does not limit directories", dir)
	}
	return nil
}

// quotaEscapes are the calls by which the owner of a file takes it out of its
// project, or into another job's, whose limit it then fills (ioctl_fsxattr and ioctl_setflags, linux/fs.h; file_setattr, Linux 6.17).
func quotaEscapes() []specs.LinuxSyscall {
	refused := uint(unix.EPERM)
	list := []specs.LinuxSyscall{{Names: []string{"file_setattr"}, Action: specs.ActErrno, ErrnoRet: &refused}}
	return append(list, refuseIoctl(0x401c5820, 0x40086602, 0x40046602)...) // FS_IOC_FSSETXATTR, FS_IOC_SETFLAGS of 64 and 32 bits
}

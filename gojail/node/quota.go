// SPDX-License-Identifier: Apache-2.0

package node

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// refuseQuotaEscapes returns rules against the calls that move a file out of its project, or into another
// job's, whose limit it would fill (ioctl_fsxattr and ioctl_setflags, linux/fs.h; file_setattr, Linux
// 6.17).
func refuseQuotaEscapes() []specs.LinuxSyscall {
	refused := uint(unix.EPERM)
	list := []specs.LinuxSyscall{{Names: []string{"file_setattr"}, Action: specs.ActErrno, ErrnoRet: &refused}}
	return append(list, refuseIoctl(0x401c5820, 0x40086602, 0x40046602)...) // FS_IOC_FSSETXATTR, FS_IOC_SETFLAGS of 64 and 32 bits
}

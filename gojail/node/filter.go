// SPDX-License-Identifier: Apache-2.0

package node

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/seccomp"
)

// FilterDir is the directory of compiled seccomp programs, below the state directory.
const FilterDir = "seccomp"

// buildProfile returns the seccomp profile of a jail's tasks, or nil for none.
func buildProfile(j *config.Jail) (*specs.LinuxSeccomp, error) {
	i := &j.Isolation
	if i.Seccomp == config.None && !i.KeepProjects {
		return nil, nil
	}
	var profile *specs.LinuxSeccomp
	var err error
	switch i.Seccomp {
	case config.None:
		profile = seccomp.AllowAll()
	case config.SeccompDefault:
		profile, err = seccomp.Default(i.BoundingNames())
	case config.SeccompContainers:
		profile, err = seccomp.Containers(i.BoundingNames())
	default:
		profile, err = seccomp.Load(i.Seccomp, i.BoundingNames())
	}
	if err != nil {
		return nil, config.JailError(j.Name, err)
	}
	refused := refuseTyping()
	if i.KeepProjects {
		refused = append(refused, refuseQuotaEscapes()...)
	}
	profile.Syscalls = append(refused, profile.Syscalls...) // the first rule that matches decides
	return profile, nil
}

// refuseTyping returns rules against ioctls that insert input into a terminal (ioctl_tty(2), ioctl_console(2)): the
// terminal of an administrator who enters a jail would execute it on the node.
func refuseTyping() []specs.LinuxSyscall { return refuseIoctl(unix.TIOCSTI, unix.TIOCLINUX) }

// refuseIoctl returns rules against ioctl commands. They compare the low 32 bits, as the kernel does.
func refuseIoctl(commands ...uint64) []specs.LinuxSyscall {
	refused := uint(unix.EPERM)
	var list []specs.LinuxSyscall
	for _, command := range commands {
		list = append(list, specs.LinuxSyscall{
			Names: []string{"ioctl"}, Action: specs.ActErrno, ErrnoRet: &refused,
			Args: []specs.LinuxSeccompArg{{Index: 1, Value: command, Op: specs.OpEqualTo}},
		})
	}
	return list
}

// CompileFilter compiles the seccomp program of a jail, or returns nil for none.
func CompileFilter(j *config.Jail) ([]byte, error) {
	profile, err := buildProfile(j)
	if profile == nil || err != nil {
		return nil, err
	}
	program, err := seccomp.Compile(profile)
	if err != nil {
		return nil, config.JailErrorf(j.Name, "seccomp: %w", err)
	}
	return program, nil
}

// refuseQuotaEscapes returns rules against the calls that move a file out of its project, or into that of another job,
// which would pay for it with its limit (ioctl_fsxattr and ioctl_setflags, linux/fs.h; file_setattr, Linux 6.17).
func refuseQuotaEscapes() []specs.LinuxSyscall {
	refused := uint(unix.EPERM)
	list := []specs.LinuxSyscall{{Names: []string{"file_setattr"}, Action: specs.ActErrno, ErrnoRet: &refused}}
	// FS_IOC_FSSETXATTR, FS_IOC_SETFLAGS of 64 and 32 bits
	return append(list, refuseIoctl(0x401c5820, 0x40086602, 0x40046602)...)
}

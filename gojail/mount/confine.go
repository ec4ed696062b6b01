// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
)

// Confine takes from the calling thread, and from what it starts, what a task of
// the jail has not: capabilities, new privileges, system calls. The thread must be
// locked to its goroutine and end with it; it needs CAP_SETPCAP. As confine_apply in
// spank/common/confine.c does for tasks.
func Confine(j *config.Jail) error {
	i := &j.Isolation
	program, err := node.Filter(j)
	if err != nil {
		return err
	}
	for n := range 64 {
		held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(n), 0, 0, 0)
		if err != nil {
			break // beyond the last of this kernel (capabilities(7))
		}
		if held == 0 || i.Bounding()>>n&1 == 1 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(n), 0, 0, 0); err != nil {
			return fmt.Errorf("cannot drop capability %d: %w", n, err)
		}
	}
	if i.Abstract == config.AbstractStep {
		if err := keepApart(); err != nil {
			return fmt.Errorf("cannot keep abstract sockets apart: %w", err)
		}
	}
	if err := dropInheritable(i.Bounding()); err != nil {
		return fmt.Errorf("cannot drop inheritable capabilities: %w", err)
	}
	if i.NoNewPrivs {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("cannot set no_new_privs: %w", err)
		}
	}
	if len(program) == 0 {
		return nil
	}
	filter := unix.SockFprog{Len: uint16(len(program) / 8), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return fmt.Errorf("cannot install the seccomp filter: %w", errno)
	}
	return nil
}

// keepApart makes the thread, and what it starts, a domain whose abstract Unix sockets are its own. Linux 6.12.
func keepApart() error {
	ruleset, err := ScopeRuleset()
	if err != nil {
		return err
	}
	defer unix.Close(ruleset)
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// ScopeRuleset fails where the kernel has no Landlock, or none with this scope: E2BIG.
func ScopeRuleset() (int, error) {
	attr := struct{ fs, net, scoped uint64 }{scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// dropInheritable: a program of root's has what is inheritable, whatever the bounding set is.
func dropInheritable(bounding uint64) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	for half := range data {
		data[half].Inheritable &= uint32(bounding >> (32 * half))
	}
	return unix.Capset(&header, &data[0])
}

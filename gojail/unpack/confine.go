// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/seccomp"
)

// systemDirs are the directories that a confined program sees, read-only: they have the program and its libraries. On
// most systems all but /usr are symbolic links into it.
var systemDirs = []string{"usr", "bin", "lib", "lib32", "lib64", "libx32"}

// confinedLimits are the resource limits of a confined program. It writes to a pipe, so that it needs no file. The
// stacks of threads count as data, and a thread's stack is as large as RLIMIT_STACK (pthread_create(3)): hence the low
// limit.
var confinedLimits = map[int]uint64{unix.RLIMIT_FSIZE: 0, unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: 16,
	unix.RLIMIT_STACK: 1 << 20, unix.RLIMIT_DATA: 1 << 30}

// Confine returns a command that runs a program of this machine as a filter, from its standard input to its standard
// output, on data that nobody vouches for. The program has the namespaces of a child that unpacks, sees only read-only
// system directories, and has no capabilities, no new privileges, Docker's system call filter, and limits. In these
// directories it can read files that root owns or that anybody may read, and it can change nothing. Self is the command
// line of a Tree.
func Confine(ctx context.Context, self []string, program string, args ...string) (*exec.Cmd, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, err
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !strings.HasPrefix(path, "/") || !slices.Contains(systemDirs, top) {
		return nil, fmt.Errorf("%s cannot run confined: it is in none of the directories /usr and /bin; install the "+
			"package of the system", path)
	}
	text,
		err := json.Marshal(request{Action: actionConfine, Program: path, Command: append([]string{program}, args...)})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self[0], append(self[1:len(self):len(self)], string(text))...)
	cmd.Dir, cmd.SysProcAttr = "/", childAttributes()
	return cmd, nil
}

// executeConfined replaces this process by a confined program. It returns only if that fails.
func executeConfined(program string, command []string) error {
	runtime.LockOSThread() // capabilities and filters belong to a thread, and execve(2) keeps those of the caller
	// Gojail may have inherited descriptors from its parent: by one of a directory, the program could leave its root.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("cannot close the open files of this process: %w", err)
	}
	if err := enterSystemDirs(); err != nil {
		return fmt.Errorf("cannot make a root of system directories: %w", err)
	}
	profile, err := seccomp.Default(nil)
	if err != nil {
		return err
	}
	filter, err := seccomp.Compile(profile)
	if err != nil {
		return err
	}
	for resource, most := range confinedLimits {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("cannot set a resource limit: %w", err)
		}
	}
	// Before the filter: seccomp(2) demands no_new_privs of a thread without CAP_SYS_ADMIN.
	if err := dropPrivileges(); err != nil {
		return fmt.Errorf("cannot drop privileges: %w", err)
	}
	compiled := unix.SockFprog{Len: uint16(len(filter) / 8), Filter: (*unix.SockFilter)(unsafe.Pointer(&filter[0]))}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&compiled))); errno != 0 {
		return fmt.Errorf("cannot install the system call filter: %w", errno)
	}
	return fmt.Errorf("cannot execute %s: %w", program, unix.Exec(program, command, []string{"LC_ALL=C"}))
}

// enterSystemDirs makes a read-only tmpfs with read-only bind mounts of the system directories the root of this
// process. It mounts the tmpfs on /proc, a directory that every machine has and the program does not get.
func enterSystemDirs() error {
	const base = "/proc"
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	if err := unix.Mount("tmpfs", base, "tmpfs", flags|unix.MS_NOEXEC, "mode=0755,size=64k"); err != nil {
		return err
	}
	for _, dir := range systemDirs {
		from, to := "/"+dir, filepath.Join(base, dir)
		target, err := os.Readlink(from)
		if err == nil {
			if err := os.Symlink(target, to); err != nil {
				return err
			}
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		// mount(2) ignores the flags of a new bind mount: a second call makes it read-only.
		if err := unix.Mount("", to, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|flags, ""); err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
	}
	if err := unix.Mount("", base, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|flags|unix.MS_NOEXEC,
		""); err != nil {
		return err
	}
	return pivotInto(base)
}

// noRoot are the securebits with which a program of root gets no capabilities at execve(2), and cannot change that
// (linux/securebits.h): NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE, these and KEEP_CAPS locked.
const noRoot = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<5 | 1<<6 | 1<<7

// dropPrivileges drops all capabilities of this thread and of the program that it executes. The user stays root: an
// unprivileged user could have other processes on this machine, which could trace the program (ptrace(2)).
func dropPrivileges() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		// EINVAL: a capability that this kernel does not have
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Setgroups(nil); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	// Last, because the calls above need capabilities.
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

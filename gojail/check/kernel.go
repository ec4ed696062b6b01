// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/subids"
	"github.com/gojail/gojail/internal/oneline"
)

// ProbeScope returns nil if the kernel can isolate abstract Unix sockets, for abstract_sockets = "step". It creates the
// Landlock domain for that, which fails if the kernel has no Landlock, or none with this scope: E2BIG.
func ProbeScope() error {
	attr := struct{ fs, net, scoped uint64 }{scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr),
		0)
	if errno != 0 {
		return fmt.Errorf("this node's kernel cannot restrict abstract sockets: %w", errno)
	}
	return unix.Close(int(fd))
}

// ProbeMap returns nil if the ids of the file system of an open directory can be mapped. It makes such a mount,
// detached.
func ProbeMap(at int) error {
	namespace, err := openUserNamespace()
	if err != nil {
		return err
	}
	defer namespace.Close()
	fd, err := mount.CloneMapped(at, false, int(namespace.Fd()))
	if err != nil {
		return fmt.Errorf("its file system cannot map ids: %w", err)
	}
	return unix.Close(fd)
}

// openUserNamespace opens a new user namespace with some mapped ids. A child process holds it until it is
// open.
func openUserNamespace() (*os.File, error) {
	cmd := exec.Command("cat")
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 1 << 16, Size: subids.Count}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids}
	hold, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create a user namespace to test id-mapped mounts: %w", oneline.Cause(err))
	}
	defer func(hold io.Closer) { hold.Close(); cmd.Wait() }(hold)
	return os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
}

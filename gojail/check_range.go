// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// tryRange reports whether --jail-root=range would be refused in a jail, and what an administrator
// can do: it does with detached mounts what a launch does.
func (c *Config) tryRange(j *Jail) (remedy string, err error) {
	root, err := openJail(j)
	if err != nil {
		return "", err
	}
	defer unix.Close(root)
	view, err := readMountView("self")
	if err != nil {
		return "", err
	}
	defer view.close()
	own, err := view.regionOf(root)
	if err == nil {
		err = c.refuseSuid(own)
	}
	if suid := (*suidError)(nil); errors.As(err, &suid) {
		return suid.remedy(), err
	}
	if err != nil {
		return "", err
	}
	return `take "range" out of jail_root, or use ext4, xfs or btrfs there`, c.tryMaps(j, root)
}

// tryMaps maps the ids of a jail's root, and of what is mounted in its data directories.
func (c *Config) tryMaps(j *Jail, root int) error {
	namespace, err := openUserNamespace()
	if err != nil {
		return err
	}
	defer namespace.Close()
	try := func(at int, path string) error {
		fd, err := cloneMapped(at, false, int(namespace.Fd()))
		if err != nil {
			return fmt.Errorf("--jail-root=range: the file system of %s cannot map ids (%w)", path, err)
		}
		return unix.Close(fd)
	}
	if err := try(root, j.Root); err != nil {
		return err
	}
	for _, m := range configuredMounts(j) {
		if m.Type != "bind" || slices.Contains(m.Options, "ro") || !isData(j, m.Destination) {
			continue
		}
		if err := c.tryMount(j, m, try); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) tryMount(j *Jail, m specs.Mount, try func(at int, path string) error) error {
	at, err := openSourceOf(m.Source, j.Root)
	if err != nil {
		return nil // another finding tells
	}
	defer unix.Close(at)
	return try(at, m.Source)
}

// openUserNamespace opens a new user namespace in which some ids are mapped. A process holds it meanwhile.
func openUserNamespace() (*os.File, error) {
	cmd := exec.Command("cat")
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 1 << 16, Size: rangeCount}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids}
	hold, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a user namespace to try id-mapped mounts with: %w", cause(err))
	}
	defer func(hold io.Closer) { hold.Close(); cmd.Wait() }(hold)
	return os.Open(fmt.Sprintf("/proc/%d/ns/user", cmd.Process.Pid))
}

// isData reports whether a path lies in a data directory of a jail, or is one.
func isData(j *Jail, path string) bool {
	if j.Data == nil {
		return ownData(j, firstName(path))
	}
	return slices.ContainsFunc(j.Data, func(dir string) bool { return under(path, dir) })
}

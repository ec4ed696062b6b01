// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/link"
)

// ShowFiles creates the device nodes of a job's RDMA devices in another sandbox of the job.
func ShowFiles(state, job string, holder int) error {
	got, err := attach.ReadNetwork(attach.StateDir(state), job)
	if err != nil {
		return fmt.Errorf("the job's sandbox cannot join its network: %w", err)
	}
	return makeDeviceNodes(holder, got)
}

// makeDeviceNodes creates the device nodes of the job's RDMA devices in the sandbox, whose
// /dev/infiniband is a separate file system. They disappear with the sandbox.
func makeDeviceNodes(holder int, got *attach.Network) error {
	if len(got.Files) == 0 {
		return nil
	}
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", holder), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the job's sandbox ended while its network was attached: %w", err)
	}
	defer unix.Close(root)
	dir, err := rootpath.OpenBeneath(root, "/dev/infiniband", rootpath.InRoot|unix.RESOLVE_NO_SYMLINKS)
	if err != nil {
		return fmt.Errorf("the jail has no /dev/infiniband for the devices of its rails: %w", err)
	}
	defer unix.Close(dir)
	if err := checkDirectory(dir); err != nil {
		return err
	}
	for _, f := range got.Files {
		if err := makeDeviceNode(dir, f); err != nil {
			return fmt.Errorf("cannot create /dev/%s for the job: %w", f.Path, err)
		}
	}
	return nil
}

// checkDirectory accepts only the tmpfs that the holder mounted there: the owner of the
// jail's root can put another directory in its place while the rails are attached.
func checkDirectory(dir int) error {
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err := errors.Join(unix.Fstat(dir, &st), unix.Fstatfs(dir, &fs)); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || fs.Type != unix.TMPFS_MAGIC || st.Uid != 0 || st.Mode&0o022 != 0 {
		return errors.New("/dev/infiniband of the jail is not the tmpfs that was mounted there: it was replaced in " +
			"the jail's root; run: gojail reload")
	}
	return nil
}

// makeDeviceNode creates a device node, or accepts the same node of an earlier step of the
// job.
func makeDeviceNode(dir int, f link.CharDevice) error {
	name := filepath.Base(f.Path)
	mask := unix.Umask(0) // avoids chmod by name; no other process shares this file system state
	defer unix.Umask(mask)
	mode := uint32(0o666)
	if strings.HasPrefix(name, "issm") {
		mode = 0o600 // opening it announces a subnet manager to the fabric (drivers/infiniband/core/user_mad.c)
	}
	err := unix.Mknodat(dir, name, unix.S_IFCHR|mode, int(f.Number()))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != f.Number() {
		return errors.New("a file of the job's previous network is in its place; submit the job again")
	}
	return nil
}

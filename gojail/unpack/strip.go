// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"errors"
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// stripper applies a policy to a tree that another program filled, and counts its files.
type stripper struct {
	policy Policy
	result Result
	links  map[uint64]bool // inodes of files with several names
}

// stripPath applies the policy to a path and to everything below it.
func (s *stripper) stripPath(full string) error {
	var st unix.Stat_t
	if err := unix.Lstat(full, &st); err != nil {
		return fmt.Errorf("cannot stat %s: %w", quoteName(full), err)
	}
	s.result.Entries++
	if err := s.stripFile(full, &st); err != nil {
		return fmt.Errorf("%s: %w", quoteName(full), err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	names, err := readNames(full)
	for ; err == nil && len(names) > 0; names = names[1:] {
		err = s.stripPath(path.Join(full, names[0]))
	}
	return err
}

// readNames returns the names in a directory. It follows no symbolic link, and does not wait at a FIFO, because users
// may exchange files of a version while it is verified.
func readNames(dir string) ([]string, error) {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read the directory %s: %w", quoteName(dir), errors.Unwrap(err))
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("cannot read the directory %s: %w", quoteName(dir), err)
	}
	return names, nil
}

// stripFile applies the policy to one file, and adds its size to the result. A file with several names adds it once.
func (s *stripper) stripFile(full string, st *unix.Stat_t) error {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return nil
	case unix.S_IFCHR, unix.S_IFBLK:
		if s.policy.Devices == DevicesMake {
			return nil
		}
		if s.policy.Devices == DevicesRefuse {
			return errors.New("is a device node; a jail has its own /dev, so leave it out: --devices=drop")
		}
		s.result.Entries--
		s.result.leaveOut(leftDevices, 1)
		return unix.Unlink(full)
	case unix.S_IFREG:
		if !s.links[st.Ino] {
			s.result.Bytes += st.Size
		}
		if st.Nlink > 1 {
			s.links[st.Ino] = true
		}
		if st.Mode&setIDBits != 0 && !s.policy.Setuid {
			s.result.leaveOut(leftSetuid, 1)
			if err := unix.Chmod(full, st.Mode&permissions); err != nil {
				return fmt.Errorf("cannot change the mode: %w", err)
			}
		}
	}
	return s.stripXattrs(full)
}

// stripXattrs removes the attributes that give rights or that overlayfs follows. Labels stay, because this node set
// them.
func (s *stripper) stripXattrs(full string) error {
	names, err := readXattrNames(full)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == "security.selinux" || name == "system.nfs4_acl" || keepsXattr(&s.result, s.policy, name) {
			continue
		}
		if err := unix.Lremovexattr(full, name); err != nil {
			return fmt.Errorf("cannot remove the extended attribute %s: %w", quoteName(name), err)
		}
	}
	return nil
}

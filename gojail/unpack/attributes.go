// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	capabilityKey = "security.capability"
	permissions   = 0o1777
	setIDBits     = unix.S_ISUID | unix.S_ISGID
)

// idMax is the highest number of a user or group: lchown(2) takes the one above it for "unchanged".
const idMax = 1<<32 - 2

// setAttributes sets owner, mode, extended attributes and times of a path, whose parent directory is a real path. The
// owner is first, because chown(2) clears set-ID bits and security.capability. hasMode is false for a symbolic link,
// which has no mode of its own.
func (u *unpacker) setAttributes(full string, h *tar.Header, hasMode bool) error {
	if h.Uid < 0 || h.Gid < 0 || int64(h.Uid) > idMax || int64(h.Gid) > idMax {
		return fmt.Errorf("the owner %d:%d is out of range", h.Uid, h.Gid)
	}
	if err := unix.Lchown(full, h.Uid, h.Gid); err != nil {
		return fmt.Errorf("cannot change the owner to %d:%d: %w", h.Uid, h.Gid, err)
	}
	if hasMode {
		if err := unix.Chmod(full, u.modeOf(h)); err != nil {
			return fmt.Errorf("cannot change the mode: %w", err)
		}
	}
	if err := u.setXattrs(full, h); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeDir {
		return nil // restoreTimes sets its times at the end, because later entries in it change them
	}
	t, err := readTimes(h.AccessTime, h.ModTime)
	if err != nil {
		return err
	}
	return setTimes(full, t)
}

// modeOf returns the permissions of an entry. The set-group-ID bit of a directory gives no user rights (it only passes
// the group on to new files), so it is kept.
func (u *unpacker) modeOf(h *tar.Header) uint32 {
	bits := uint32(h.Mode) & (permissions | setIDBits)
	if h.Typeflag == tar.TypeDir {
		return bits &^ unix.S_ISUID
	}
	if bits&setIDBits != 0 && !u.policy.Setuid {
		u.result.leaveOut(leftSetuid, 1)
		return bits & permissions
	}
	return bits
}

// setXattrs sets the extended attributes that the policy keeps. All attributes of an entry together have at most
// xattrMax bytes, including those that are not kept.
func (u *unpacker) setXattrs(full string, h *tar.Header) error {
	xattrs, others, err := readXattrs(h)
	if err != nil {
		return err
	}
	if others > 0 {
		u.result.leaveOut(leftAttributes, others)
	}
	size := 0
	for name, value := range xattrs {
		if size += len(name) + len(value); size > xattrMax {
			return fmt.Errorf("the extended attributes have more than %d bytes", xattrMax)
		}
		if len(name) > nameMax || strings.ContainsRune(name, 0) {
			return fmt.Errorf("invalid name %s of an extended attribute", quoteName(name))
		}
		// A symbolic link cannot have user.* (xattr(7)), and a capability of it would have no effect.
		if !keepsXattr(&u.result, u.policy, name) || h.Typeflag == tar.TypeSymlink {
			continue
		}
		switch err := unix.Lsetxattr(full, name, []byte(value), 0); {
		case errors.Is(err, unix.EOPNOTSUPP) && name != capabilityKey:
			u.result.leaveOut(leftAttributes, 1) // storage without them, such as NFS before Linux 5.9
		case err != nil:
			return fmt.Errorf("cannot set the extended attribute %s: %w", quoteName(name), err)
		}
	}
	return nil
}

// keepsXattr reports whether an extended attribute is kept, and counts one that is not. user.overlay.* is not kept: an
// overlay that is mounted with userxattr would follow it.
func keepsXattr(result *Result, policy Policy, name string) bool {
	switch {
	case name == capabilityKey && policy.Setuid:
		return true
	case name == capabilityKey:
		result.leaveOut(leftCapability, 1)
		return false
	case strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay."):
		return true
	}
	result.leaveOut(leftAttributes, 1)
	return false
}

// removeUserXattrs removes the extended attributes that a lower layer gave a directory: an entry of an upper layer
// replaces all attributes, even those that it does not name.
func removeUserXattrs(full string) error {
	names, err := readXattrNames(full)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "user.") {
			continue
		}
		if err := unix.Lremovexattr(full, name); err != nil {
			return fmt.Errorf("cannot remove the extended attribute %s: %w", quoteName(name), err)
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// createEntry creates one entry at its real path. An existing file is removed first and never written: it may have
// other names, by hard links of a lower layer, that must keep its content.
func (u *unpacker) createEntry(full string, h *tar.Header, body io.Reader) error {
	if h.Typeflag == tar.TypeDir {
		return u.createDirectory(full, h)
	}
	if h.Typeflag == tar.TypeLink {
		return u.createLink(full, h.Linkname)
	}
	if isDevice(h) && u.policy.Devices != DevicesMake {
		return u.leaveOutDevice(full)
	}
	if err := u.removeExisting(full); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		return u.createFile(full, h, body)
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) > pathMax {
			return fmt.Errorf("the symbolic link has a target of %d bytes", len(h.Linkname))
		}
		if err := unix.Symlink(h.Linkname, full); err != nil {
			return fmt.Errorf("cannot create the symbolic link: %w", err)
		}
		return u.setAttributes(full, h, false)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		// Mkdev takes 32 bits: a larger number would become that of another device.
		if h.Devmajor != int64(uint32(h.Devmajor)) || h.Devminor != int64(uint32(h.Devminor)) {
			return fmt.Errorf("the device number %d:%d is out of range", h.Devmajor, h.Devminor)
		}
		kind := map[byte]uint32{tar.TypeChar: unix.S_IFCHR, tar.TypeBlock: unix.S_IFBLK,
			tar.TypeFifo: unix.S_IFIFO}[h.Typeflag]
		if err := unix.Mknod(full, kind|0o600, int(unix.Mkdev(uint32(h.Devmajor), uint32(h.Devminor)))); err != nil {
			return fmt.Errorf("cannot create the special file: %w", err)
		}
		return u.setAttributes(full, h, true)
	}
	return fmt.Errorf("unknown %s", describeType(h.Typeflag))
}

// isFile reports whether an entry is a regular file with content of its own.
func isFile(h *tar.Header) bool { return h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeGNUSparse }

func isDevice(h *tar.Header) bool { return h.Typeflag == tar.TypeChar || h.Typeflag == tar.TypeBlock }

// leaveOutDevice applies the policy to a device node that is not made.
func (u *unpacker) leaveOutDevice(full string) error {
	if u.policy.Devices == DevicesRefuse {
		return errors.New("is a device node; a jail has its own /dev, so leave it out: --devices=drop")
	}
	return u.leaveOut(full)
}

// leaveOut leaves out a device node, and remembers its path: a hard link to it must be left out as well, and is no
// error.
func (u *unpacker) leaveOut(full string) error {
	u.result.leaveOut(leftDevices, 1)
	err := u.removeExisting(full)
	u.absent[u.hashPath(full)] = struct{}{} // after removeExisting, which forgets the path
	return err
}

// createDirectory creates a directory, or keeps an existing one with its content. A symbolic link is replaced: an entry
// of type directory says that there is a directory.
func (u *unpacker) createDirectory(full string, h *tar.Header) error {
	var st unix.Stat_t
	err := unix.Lstat(full, &st)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		if err := u.removeExisting(full); err != nil {
			return err
		}
		if err := makeDirectory(full, 0, 0, 0o700); err != nil {
			return fmt.Errorf("cannot create the directory: %w", err)
		}
	}
	return u.setDirectory(full, h)
}

// setDirectory gives a directory the attributes of its entry, instead of those of a lower layer.
func (u *unpacker) setDirectory(full string, h *tar.Header) error {
	if err := removeUserXattrs(full); err != nil {
		return err
	}
	if err := u.setAttributes(full, h, true); err != nil {
		return err
	}
	t, err := readTimes(h.AccessTime, h.ModTime)
	u.times[u.hashPath(full)] = t
	return err
}

// createLink creates a hard link. It resolves the target as any name in the archive, and refuses a directory, to which
// Linux makes no hard links, with a clear error.
func (u *unpacker) createLink(full, to string) error {
	name, err := cleanName(to)
	if err != nil {
		return fmt.Errorf("hard link: %w", err)
	}
	dir, err := u.findParent(path.Dir(name), false)
	if err != nil {
		return fmt.Errorf("hard link to %s: %w", quoteName(to), err)
	}
	target := path.Join(dir, path.Base(name))
	if _, ok := u.absent[u.hashPath(target)]; ok {
		return u.leaveOut(full)
	}
	var st unix.Stat_t
	switch err := unix.Lstat(target, &st); {
	case err == unix.ENOENT:
		return fmt.Errorf("hard link to %s: %w; it can only lead to an earlier entry", quoteName(to), err)
	case err != nil:
		return fmt.Errorf("hard link to %s: %w", quoteName(to), err)
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		return fmt.Errorf("hard link to the directory %s", quoteName(to))
	case target == full:
		return nil // GNU tar writes such an entry for a name that it was given twice
	}
	if err := u.removeExisting(full); err != nil {
		return err
	}
	if err := unix.Link(target, full); err != nil {
		return fmt.Errorf("cannot create the hard link to %s: %w", quoteName(to), err)
	}
	return nil
}

// createFile creates a regular file. O_EXCL and O_NOFOLLOW fail if anything is at the path: removeExisting has removed
// it.
func (u *unpacker) createFile(full string, h *tar.Header, body io.Reader) error {
	f, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("cannot create the file: %w", errors.Unwrap(err))
	}
	err = u.writeContent(f, body, h.Size)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("cannot write the file: %w", err)
	}
	return u.setAttributes(full, h, true)
}

// zeros is compared with blocks of a file: a block of zeros becomes a part of a hole.
var zeros [4096]byte

// writeContent copies size bytes, and leaves holes where whole buffers of the source are zero.
func (u *unpacker) writeContent(f *os.File, body io.Reader, size int64) error {
	hole := false
	for left := size; left > 0; {
		part := u.buffer[:min(left, int64(len(u.buffer)))]
		if _, err := io.ReadFull(body, part); err != nil {
			return err
		}
		left -= int64(len(part))
		var err error
		if hole = isZero(part); hole {
			_, err = f.Seek(int64(len(part)), io.SeekCurrent)
		} else {
			_, err = f.Write(part)
		}
		if err != nil {
			return err
		}
	}
	// A seek beyond the end does not change the size of a file.
	if hole {
		return f.Truncate(size)
	}
	return nil
}

// isZero reports whether a block has only NUL bytes.
func isZero(part []byte) bool {
	for ; len(part) > len(zeros); part = part[len(zeros):] {
		if !bytes.Equal(part[:len(zeros)], zeros[:]) {
			return false
		}
	}
	return bytes.Equal(part, zeros[:len(part)])
}

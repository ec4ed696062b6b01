// SPDX-License-Identifier: Apache-2.0

package imagefile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// kind is the type of an image's file system, as mount(8) names it.
type kind string

const (
	kindSquashfs kind = "squashfs"
	kindEROFS    kind = "erofs"
)

// Layouts of the superblocks: fs/squashfs/squashfs_fs.h and fs/erofs/erofs_fs.h of Linux. All numbers are
// little-endian.
const (
	squashfsMagic = 0x73717368
	squashfsSize  = 96 // of the superblock, at the beginning of the file
	erofsMagic    = 0xe0f5e1e2
	erofsOffset   = 1024
	erofsSize     = 128
	erofs48Bit    = 0x80 // feature_incompat: the number of blocks has 48 bits
)

// sectorSize is the unit of a loop device, which does not show any bytes after the last whole sector of a file.
const sectorSize = 512

// errForeign is the error for a file that is not an image.
var errForeign = errors.New("is not a directory, nor an image (squashfs 4.0 or EROFS)")

// readKind returns the kind of the image in a file of the given size, by its superblock. It fails if the file is
// shorter than the superblock says, so that the kernel never reads a damaged copy.
func readKind(file io.ReaderAt, size int64) (kind, error) {
	head := make([]byte, erofsOffset+erofsSize)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	head = head[:n]
	switch {
	case n >= squashfsSize && binary.LittleEndian.Uint32(head) == squashfsMagic:
		return kindSquashfs, checkSquashfs(head, size)
	case n == erofsOffset+erofsSize && binary.LittleEndian.Uint32(head[erofsOffset:]) == erofsMagic:
		return kindEROFS, checkErofs(head[erofsOffset:], size)
	}
	return "", errForeign
}

func checkSquashfs(head []byte, size int64) error {
	if major := binary.LittleEndian.Uint16(head[28:]); major != 4 {
		return fmt.Errorf(
			"is an image of squashfs %d, which Linux cannot mount; create it with mksquashfs 4.0 or later", major)
	}
	used := binary.LittleEndian.Uint64(head[40:])
	if used < squashfsSize {
		return errForeign
	}
	if err := checkLength(used, size); err != nil {
		return err
	}
	if used > uint64(size)&^(sectorSize-1) {
		return fmt.Errorf("does not end at a multiple of %d bytes; create it without -nopad", sectorSize)
	}
	return nil
}

func checkErofs(super []byte, size int64) error {
	bits := super[12]
	if bits < 9 || bits > 16 {
		return errForeign
	}
	blocks := uint64(binary.LittleEndian.Uint32(super[36:]))
	if binary.LittleEndian.Uint32(super[80:])&erofs48Bit != 0 {
		blocks |= uint64(binary.LittleEndian.Uint16(super[14:])) << 32
	}
	if binary.LittleEndian.Uint16(super[86:]) != 0 {
		return errors.New("needs further files with its data; make an image of one file (mkfs.erofs without --blobdev)")
	}
	if blocks == 0 {
		return errForeign
	}
	return checkLength(blocks<<bits, size)
}

// checkLength fails if a file is shorter than its superblock says.
func checkLength(want uint64, size int64) error {
	if want > uint64(size) {
		return fmt.Errorf("is truncated: it has %d bytes of %d; copy it again, under another name, and rename it", size,
			want)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package imagefile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
)

// squashfsHead returns the superblock of an image with that many bytes.
func squashfsHead(used uint64) []byte {
	head := make([]byte, 4096)
	binary.LittleEndian.PutUint32(head, squashfsMagic)
	binary.LittleEndian.PutUint16(head[28:], 4)
	binary.LittleEndian.PutUint64(head[40:], used)
	return head
}

// erofsHead returns the superblock of an image of that many blocks of 4096 bytes.
func erofsHead(blocks uint32) []byte {
	head := make([]byte, 4096)
	binary.LittleEndian.PutUint32(head[erofsOffset:], erofsMagic)
	head[erofsOffset+12] = 12
	binary.LittleEndian.PutUint32(head[erofsOffset+36:], blocks)
	return head
}

func withBytes(head []byte, at int, value ...byte) []byte {
	copy(head[at:], value)
	return head
}

func TestReadKind(t *testing.T) {
	const foreign = "is not a directory, nor an image (squashfs 4.0 or EROFS)"
	for name, test := range map[string]struct {
		head []byte
		size int64
		kind kind
		want string // "": no error
	}{
		"squashfs":            {squashfsHead(4000), 4096, kindSquashfs, ""},
		"squashfs, shorter":   {squashfsHead(8000), 4096, kindSquashfs, "is truncated: it has 4096 bytes of 8000; copy it again, under another name, and rename it"},
		"squashfs, huge":      {squashfsHead(1<<64 - 1), 4096, kindSquashfs, "is truncated: it has 4096 bytes of 18446744073709551615; copy it again, under another name, and rename it"},
		"squashfs, not even":  {squashfsHead(4090), 4095, kindSquashfs, "does not end at a multiple of 512 bytes; create it without -nopad"},
		"squashfs 3":          {withBytes(squashfsHead(4000), 28, 3), 4096, kindSquashfs, "is an image of squashfs 3, which Linux cannot mount; create it with mksquashfs 4.0 or later"},
		"squashfs of nothing": {squashfsHead(95), 4096, kindSquashfs, foreign},
		"squashfs, only head": {squashfsHead(4000)[:95], 95, "", foreign},
		"erofs":               {erofsHead(1), 4096, kindEROFS, ""},
		"erofs, shorter":      {erofsHead(3), 8192, kindEROFS, "is truncated: it has 8192 bytes of 12288; copy it again, under another name, and rename it"},
		"erofs, 48 bits":      {withBytes(withBytes(erofsHead(1), erofsOffset+80, erofs48Bit), erofsOffset+14, 1), 8192, kindEROFS, "is truncated: it has 8192 bytes of 17592186048512; copy it again, under another name, and rename it"},
		"erofs, block size":   {withBytes(erofsHead(1), erofsOffset+12, 60), 4096, kindEROFS, foreign},
		"erofs of nothing":    {erofsHead(0), 4096, kindEROFS, foreign},
		"erofs of two files":  {withBytes(erofsHead(1), erofsOffset+86, 1), 4096, kindEROFS, "needs further files with its data; make an image of one file (mkfs.erofs without --blobdev)"},
		"erofs, only head":    {erofsHead(1)[:erofsOffset+100], erofsOffset + 100, "", foreign},
		"ext4":                {withBytes(make([]byte, 4096), 1024+56, 0x53, 0xef), 4096, "", foreign},
		"empty":               {nil, 0, "", foreign},
	} {
		kind, err := readKind(bytes.NewReader(test.head), test.size)
		assert.Equal(t, test.kind, kind, name)
		if test.want == "" {
			assert.NoError(t, err, name)
		} else {
			assert.EqualError(t, err, test.want, name)
		}
	}
	_, err := readKind(failing{}, 4096)
	assert.EqualError(t, err, "cannot be read: stale")
}

type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) { return 0, errors.New("stale") }

// FuzzReadKind: an arbitrary file that is accepted is as long as its superblock says.
func FuzzReadKind(f *testing.F) {
	f.Add(squashfsHead(4000), int64(4096))
	f.Add(erofsHead(1), int64(4096))
	f.Add([]byte{}, int64(0))
	f.Fuzz(func(t *testing.T, head []byte, size int64) {
		if size < int64(len(head)) {
			size = int64(len(head))
		}
		kind, err := readKind(io.NewSectionReader(bytes.NewReader(head), 0, size), size)
		if err != nil {
			return
		}
		switch kind {
		case kindSquashfs:
			assert.LessOrEqual(t, binary.LittleEndian.Uint64(head[40:]), uint64(size))
		case kindEROFS:
			assert.LessOrEqual(t, uint64(binary.LittleEndian.Uint32(head[erofsOffset+36:]))<<head[erofsOffset+12], uint64(size))
		default:
			t.Errorf("kind %q without an error", kind)
		}
	})
}

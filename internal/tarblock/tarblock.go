// SPDX-License-Identifier: Apache-2.0

// Package tarblock recognizes the blocks of which tar archives consist.
package tarblock

import (
	"bytes"
	"strconv"
	"strings"
)

// Size is the size of a block.
const Size = 512

// Positions of the checksum in a header, which counts as blanks in itself.
const sumBegin, sumEnd = 148, 156

var zeros [Size]byte

// IsZero reports whether a block, or the part of one that is there, has only NUL bytes.
func IsZero(block []byte) bool { return bytes.Equal(block, zeros[:min(len(block), Size)]) }

// IsHeader reports whether a block is a header of an archive: whether its checksum is right. All formats since the
// seventh edition of Unix have it. Some old programs added bytes as signed numbers.
func IsHeader(block []byte) bool {
	if len(block) < Size {
		return false
	}
	text := strings.Trim(string(block[sumBegin:sumEnd]), " \x00")
	text, _, _ = strings.Cut(text, "\x00")
	want, err := strconv.ParseInt(strings.TrimRight(text, " "), 8, 32)
	if err != nil {
		return false
	}
	unsigned, signed := sumBlock(block)
	return want == unsigned || want == signed
}

// SetType changes the type of a header, and its checksum.
func SetType(block []byte, flag byte) {
	block[156] = flag
	sum, _ := sumBlock(block)
	text := strconv.FormatInt(sum, 8)
	copy(block[sumBegin:sumEnd], strings.Repeat("0", 6-len(text))+text+"\x00 ")
}

func sumBlock(block []byte) (unsigned, signed int64) {
	for i, c := range block[:Size] {
		if i >= sumBegin && i < sumEnd {
			c = ' '
		}
		unsigned += int64(c)
		signed += int64(int8(c))
	}
	return unsigned, signed
}

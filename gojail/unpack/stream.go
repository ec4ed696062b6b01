// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/gojail/gojail/internal/tarblock"
)

// Positions in a header, tar(5).
const (
	sizeBegin, sizeEnd = 124, 136
	typeAt             = 156
	sparseMore         = 482 // not NUL: a block with more of a sparse map follows the header
	sparseMoreNext     = 504 // the same in such a block
)

// recordsMax is the limit of an extended header, as in archive/tar.
const recordsMax = 1 << 20

// stream is a tar stream for archive/tar, which reads fewer forms of archives than tar programs do:
//
//   - An extended header of Solaris (type X) becomes one of POSIX (x), and type NUL becomes 0.
//   - The content of a hard link is left out. POSIX.1-2001 allows it; older programs wrote a size, and no content.
//   - The first block of NUL bytes is the end, and so is the end of the input before a header or within padding.
type stream struct {
	r         *bufio.Reader
	block     [tarblock.Size]byte
	pending   []byte // headers that were read and are to be returned next
	left      int64  // bytes of content and padding that follow
	padding   int64  // how many bytes of left are padding
	sparse    bool   // a block with more of a sparse map follows
	hasFile   bool   // an extended header describes the next file
	paxSize   int64  // the size in that header, or -1
	position  int64  // in the input
	hasHeader bool
}

func newStream(r io.Reader) *stream {
	return &stream{r: bufio.NewReaderSize(r, 64<<10), paxSize: -1}
}

// Read returns the archive as archive/tar reads it. The input may end in the padding after the last content, but not in
// the content.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.pending) == 0 && s.left == 0 {
		if err := s.readBlock(); err != nil {
			return 0, err
		}
	}
	if len(s.pending) > 0 {
		n := copy(p, s.pending)
		s.pending = s.pending[n:]
		return n, nil
	}
	n, err := s.r.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	s.position += int64(n)
	if n == 0 && err == io.EOF && s.left > s.padding {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// readBlock reads a header, or a block that belongs to one.
func (s *stream) readBlock() error {
	n, err := io.ReadFull(s.r, s.block[:])
	s.position += int64(n)
	if n == 0 {
		return err
	}
	block := s.block[:n]
	switch {
	case s.sparse && err == nil:
		s.sparse, s.pending = block[sparseMoreNext] != 0, block
		return nil
	case s.sparse:
		return err
	case tarblock.IsZero(block):
		return io.EOF
	case err != nil && !s.hasHeader, err == nil && !s.hasHeader && !tarblock.IsHeader(block):
		return errors.New("it does not begin with a header, so it is no tar archive, or its compression is unknown")
	case err != nil:
		return err
	case !tarblock.IsHeader(block):
		return fmt.Errorf("byte %d is not the begin of a header with a checksum", s.position-int64(n))
	}
	s.hasHeader = true
	return s.readHeader(block)
}

// readHeader determines what follows a header, and changes headers that archive/tar does not know.
func (s *stream) readHeader(block []byte) error {
	size, flag := parseSize(block[sizeBegin:sizeEnd]), block[typeAt]
	s.pending = block
	switch flag {
	case 'x', 'X':
		tarblock.SetType(block, 'x')
		return s.readRecords(size)
	case 'g', 'L', 'K':
		return s.expectContent(size)
	}
	if s.paxSize >= 0 {
		size = s.paxSize
	}
	described := s.hasFile
	s.paxSize, s.hasFile = -1, false
	switch flag {
	case 0:
		tarblock.SetType(block, '0')
	case '1':
		return s.skipLinkContent(size, described)
	case '2', '3', '4', '5', '6':
		return nil
	case 'S':
		s.sparse = block[sparseMore] != 0
	}
	return s.expectContent(size)
}

// expectContent lets the content of an entry pass through, with its padding.
func (s *stream) expectContent(size int64) error {
	s.padding = -size & (tarblock.Size - 1)
	s.left = size + s.padding
	if s.left < 0 {
		return fmt.Errorf("an entry has %d bytes", size)
	}
	return nil
}

// readRecords reads an extended header. Of its records only a size matters here: it takes the place of the size in the
// next header, and with that decides where the header after it begins.
func (s *stream) readRecords(size int64) error {
	if size > recordsMax {
		return fmt.Errorf("an extended header has %d bytes; the limit is %d", size, recordsMax)
	}
	text := make([]byte, tarblock.Size+size+(-size&(tarblock.Size-1)))
	copy(text, s.pending)
	n, err := io.ReadFull(s.r, text[tarblock.Size:])
	if s.position += int64(n); err != nil {
		return io.ErrUnexpectedEOF
	}
	s.pending, s.hasFile, s.paxSize = text, true, -1
	for rest := string(text[tarblock.Size : tarblock.Size+size]); rest != ""; {
		length, _, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(length)
		if err != nil || n <= len(length)+1 || n > len(rest) {
			return nil // archive/tar reports it
		}
		if value, ok := strings.CutPrefix(rest[len(length)+1:n], "size="); ok {
			if s.paxSize, err = strconv.ParseInt(strings.TrimSuffix(value, "\n"), 10, 64); err != nil {
				s.paxSize = -1
			}
		}
		rest = rest[n:]
	}
	return nil
}

// skipLinkContent skips the content of a hard link. There is none if a header or the end of the archive follows
// instead: older programs wrote the size of the file, and no content.
func (s *stream) skipLinkContent(size int64, described bool) error {
	if size == 0 {
		return nil
	}
	next, err := s.r.Peek(tarblock.Size)
	if err != nil && err != io.EOF {
		return err
	}
	if len(next) == 0 || tarblock.IsHeader(next) || tarblock.IsZero(next) && !described {
		return nil
	}
	if err := s.expectContent(size); err != nil {
		return err
	}
	n, err := io.CopyN(io.Discard, s.r, s.left)
	s.position += n
	if err == io.EOF && n < size && !tarblock.IsZero(next) {
		err = io.ErrUnexpectedEOF
	}
	if s.left = 0; err == io.EOF {
		err = nil
	}
	return err
}

// readEnd reads what follows the end of the archive, and returns how many bytes of it are not padding. GNU tar and
// others do not read these bytes. Old programs left bytes of an earlier archive there, in the last record. But entries
// there belong to a second archive, of which nothing would be unpacked: that is an error.
func (s *stream) readEnd() (trailing int64, err error) {
	for trailing == 0 {
		n, err := io.ReadFull(s.r, s.block[:])
		switch {
		case n == 0 && err == io.EOF:
			return 0, nil
		case err != nil && err != io.ErrUnexpectedEOF:
			return 0, fmt.Errorf("cannot read the end of the archive: %w", err)
		case tarblock.IsHeader(s.block[:n]):
			return 0, fmt.Errorf("more entries follow the end of the archive at byte %d: it is several archives; "+
				"unpack it with tar --ignore-zeros, and name the directory as dir:DIR", s.position)
		case !tarblock.IsZero(s.block[:n]):
			trailing = int64(n)
		}
		s.position += int64(n)
	}
	if !s.hasHeader {
		return 0, errors.New("the archive is damaged: it begins with NUL bytes, and other data follow")
	}
	n, err := io.Copy(io.Discard, s.r)
	if err != nil {
		return 0, fmt.Errorf("cannot read the end of the archive: %w", err)
	}
	return trailing + n, nil
}

// parseSize returns a size, which is in octal, or in base 256 as GNU tar and star write it. It returns 0 for a size
// that archive/tar refuses.
func parseSize(field []byte) (size int64) {
	if field[0]&0x80 == 0 {
		text, _, _ := strings.Cut(strings.Trim(string(field), " \x00"), "\x00")
		size, err := strconv.ParseInt(strings.TrimRight(text, " "), 8, 64)
		if err != nil {
			return 0
		}
		return max(size, 0)
	}
	if field[0]&0x40 != 0 {
		return 0 // negative
	}
	for i, c := range field {
		if i == 0 {
			c &= 0x3f
		}
		if size > 1<<54 {
			return 0
		}
		size = size<<8 | int64(c)
	}
	return size
}

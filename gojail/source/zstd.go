// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// windowMax is the limit of the window of zstd: the largest that its level --ultra makes.
const windowMax = 128 << 20

// isSkippable reports whether a skippable frame of zstd begins with these bytes (RFC 8878, 3.1.2).
func isSkippable(head []byte) bool {
	return len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18"
}

func isZstd(head []byte) bool { return findCompression(head) == "zstd" }

func openZstd(input *bufio.Reader) (io.ReadCloser, error) {
	decoder, err := zstd.NewReader(&zstdFrames{input: input},
		zstd.WithDecoderMaxWindow(windowMax), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	return decoder.IOReadCloser(), nil
}

// zstdFrames are the frames of a stream as they are stored, without the bytes that follow the last one. The decoder
// itself takes NUL bytes there for a frame, and ignores one or four bytes there. RFC 8878, 3.1.1: a frame is a header,
// blocks, and four bytes of a checksum.
type zstdFrames struct {
	input    *bufio.Reader
	left     int64 // bytes of the current part that are still to be read
	inFrame  bool
	last     bool // whether the current part is the last block of its frame
	checksum bool
}

func (z *zstdFrames) Read(p []byte) (int, error) {
	for z.left == 0 {
		if err := z.beginPart(); err != nil {
			return 0, err
		}
	}
	n, err := z.input.Read(p[:min(int64(len(p)), z.left)])
	if z.left -= int64(n); n > 0 {
		return n, nil
	}
	return 0, convertEOF(err)
}

// beginPart finds the size of the next part of the stream: a header of a frame, a whole skippable frame, a block or a
// checksum.
func (z *zstdFrames) beginPart() error {
	switch {
	case !z.inFrame:
		return z.beginFrame()
	case z.last:
		z.inFrame = false
		if z.checksum {
			z.left = 4
		}
		return nil
	}
	head, err := z.input.Peek(3)
	if err != nil {
		return convertEOF(err)
	}
	value := int64(head[0]) | int64(head[1])<<8 | int64(head[2])<<16
	z.last = value&1 != 0
	switch kind, size := value>>1&3, value>>3; kind {
	case 0, 2: // raw, compressed
		z.left = 3 + size
	case 1: // one byte, repeated
		z.left = 3 + 1
	default:
		return errors.New("a block has the reserved type 3")
	}
	return nil
}

// convertEOF returns errCut for the end of the input: the decoder takes io.ErrUnexpectedEOF for the end between two
// frames.
func convertEOF(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errCut
	}
	return err
}

func (z *zstdFrames) beginFrame() error {
	if err := checkTail(z.input, isZstd); err != nil {
		return err
	}
	head, err := z.input.Peek(zstd.HeaderMaxSize)
	if err != nil && err != io.EOF {
		return err
	}
	var h zstd.Header
	if err := h.Decode(head); err != nil {
		return convertEOF(err)
	}
	z.left = int64(h.HeaderSize)
	if h.Skippable {
		z.left += int64(h.SkippableSize)
		return nil
	}
	z.inFrame, z.last, z.checksum = true, false, h.HasCheckSum
	return nil
}

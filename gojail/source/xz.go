// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"sync/atomic"
)

const (
	xzMagic = "\xfd7zXZ\x00"
	// xzMemory is the limit of xz in MiB. A stream names the size of its dictionary, up to 4 GiB; xz -9 makes one of 64
	// MiB.
	xzMemory = 256
	// xzFooter is the size of the footer of a stream: a checksum, the size of the index, flags, and "YZ".
	xzFooter = 12
)

// xzReader is the output of xz. Unlike all other decompressors here, it is a program in C, and so it is confined.
type xzReader struct {
	io.ReadCloser
	input *xzInput
}

func openXZ(ctx context.Context, r *bufio.Reader, confine confiner) (io.ReadCloser, error) {
	cmd, err := confine(ctx, "xz", "--decompress", "--stdout", fmt.Sprintf("--memlimit-decompress=%dMiB", xzMemory))
	if err != nil {
		return nil, err
	}
	input := &xzInput{r: r}
	cmd.Stdin = input
	output, err := startReader(cmd, "decompress it with xz")
	if err != nil {
		return nil, &explainedError{err}
	}
	return xzReader{output, input}, nil
}

func (x xzReader) Read(p []byte) (int, error) {
	n, err := x.ReadCloser.Read(p)
	switch {
	case err == nil, err == io.EOF:
	case strings.Contains(err.Error(), "Memory usage limit reached"):
		err =
			&explainedError{fmt.Errorf(
				"cannot decompress it with xz in %d MiB of memory; if the source is trusted, decompress it first",
				xzMemory)}
	case x.input.trailing.Load():
		err = errTrailing
	// a header is cut off
	case strings.Contains(err.Error(), "Unexpected end of input"),
		strings.Contains(err.Error(), "File format not recognized"):
		err = io.ErrUnexpectedEOF
	default:
		err = &explainedError{err}
	}
	return n, err
}

// xzInput is the input of xz: a stream without the NUL bytes at its end, which no footer has. xz itself refuses such
// bytes unless their number is a multiple of four.
type xzInput struct {
	r      *bufio.Reader
	buffer [32 << 10]byte
	zeros  int64  // NUL bytes before chunk
	chunk  []byte // bytes that begin and end with one that is not NUL
	after  int64  // NUL bytes after chunk

	position int64 // number of bytes that were read and are not padding
	last     []byte
	ended    bool        // whether a footer was found
	tail     []byte      // first bytes after the footer
	trailing atomic.Bool // whether these bytes are not a header
}

func (x *xzInput) Read(p []byte) (n int, err error) {
	for len(x.chunk) == 0 {
		if err := x.readChunk(); err != nil {
			return 0, err
		}
	}
	if x.zeros > 0 {
		n = int(min(x.zeros, int64(len(p))))
		clear(p[:n])
		x.zeros -= int64(n)
		return n, nil
	}
	n = copy(p, x.chunk)
	x.chunk = x.chunk[n:]
	return n, nil
}

func (x *xzInput) readChunk() error {
	n, err := x.r.Read(x.buffer[:])
	if n == 0 {
		return err
	}
	x.zeros, x.after = x.zeros+x.after, 0
	left := bytes.TrimLeft(x.buffer[:n], "\x00")
	x.chunk = bytes.TrimRight(left, "\x00")
	x.zeros += int64(n - len(left))
	x.after = int64(len(left) - len(x.chunk))
	if len(x.chunk) > 0 {
		x.findFooter()
	}
	return nil
}

// findFooter determines whether xz fails because of bytes that follow a stream. It does not parse blocks: it recognises
// a footer by its checksum. Nothing but the text of an error depends on the result.
func (x *xzInput) findFooter() {
	x.last = append(x.last, make([]byte, min(x.zeros, xzFooter))...)
	text := append(x.last[max(0, len(x.last)-xzFooter):], x.chunk...)
	x.position += x.zeros + int64(len(x.chunk))
	x.last = bytes.Clone(text[max(0, len(text)-xzFooter):])
	x.readTail(x.chunk)
	for from := 0; !x.ended || len(x.tail) == 0; {
		i := bytes.Index(text[from:], []byte("YZ"))
		if i < 0 {
			return
		}
		from += i + 2
		after := text[from:]
		if from >= xzFooter && (x.position-int64(len(after)))%4 == 0 && isXZFooter(text[from-xzFooter:from]) {
			x.ended = true
			x.readTail(after)
		}
	}
}

// readTail reads the bytes that follow a footer: the header of a stream, or something else.
func (x *xzInput) readTail(after []byte) {
	begin := xzMagic[:5] // without its NUL byte
	if len(x.tail) == 0 {
		after = bytes.TrimLeft(after, "\x00")
	}
	if !x.ended || len(after) == 0 {
		return
	}
	x.tail = append(x.tail, after[:min(len(after), len(begin)-len(x.tail))]...)
	x.trailing.Store(string(x.tail) != begin)
	if !x.trailing.Load() {
		x.ended, x.tail = false, nil
	}
}

func isXZFooter(footer []byte) bool {
	return crc32.ChecksumIEEE(footer[4:10]) == binary.LittleEndian.Uint32(footer)
}

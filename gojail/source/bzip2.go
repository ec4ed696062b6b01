// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"compress/bzip2"
	"io"
)

// bzip2Reader is a decompressed stream.
type bzip2Reader struct {
	io.Reader
	input *bzip2Input
}

func openBzip2(input *bufio.Reader) io.ReadCloser {
	bytes := &bzip2Input{input: input}
	return &bzip2Reader{bzip2.NewReader(bytes), bytes}
}

func (b *bzip2Reader) Close() error { return nil }

func (b *bzip2Reader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && err != io.EOF && b.input.afterEnd() {
		err = errTrailing
	}
	return n, err
}

// bzip2Input are the bytes that compress/bzip2 reads, one by one: it reads none that it does not need. After the end of
// a stream it needs the first two bytes of the next one, and does not report that an end was there. So bzip2Input finds
// the end itself: a number of 48 bits, a checksum of 32 bits, and at most seven bits up to the next byte. Compressed
// data could have that number by chance. Therefore only NUL bytes up to the end of the input are withheld; for other
// bytes, nothing but the text of an error depends on it.
type bzip2Input struct {
	input     *bufio.Reader
	high, low uint64 // the last bytes that were read
	sinceEnd  int    // bytes that were read since an end; 0: the end is here
	begun     bool   // whether an end was found
	withheld  int    // NUL bytes that turned out to be data
}

// bzip2End is the number at the end of a stream.
const bzip2End, bits48 = 0x177245385090, 1<<48 - 1

// afterEnd reports whether the decoder failed at bytes that follow the end of a stream.
func (b *bzip2Input) afterEnd() bool { return b.begun && (b.sinceEnd == 1 || b.sinceEnd == 2) }

// Read is never called: bzip2 prefers ReadByte.
func (b *bzip2Input) Read([]byte) (int, error) { return 0, io.ErrNoProgress }

func (b *bzip2Input) ReadByte() (byte, error) {
	if b.withheld > 0 {
		b.withheld--
		return b.count(0), nil
	}
	c, err := b.input.ReadByte()
	if err != nil {
		return 0, err
	}
	if c == 0 && b.begun && b.sinceEnd == 0 {
		if err := b.withholdZeros(); err != nil {
			return 0, err
		}
	}
	return b.count(c), nil
}

// withholdZeros reads all NUL bytes that are next, and returns io.EOF if nothing follows them.
func (b *bzip2Input) withholdZeros() error {
	for {
		c, err := b.input.ReadByte()
		if err != nil {
			return err
		}
		if c != 0 {
			return b.input.UnreadByte()
		}
		b.withheld++
	}
}

// count records a byte that the decoder gets, and returns it.
func (b *bzip2Input) count(c byte) byte {
	b.high, b.low = b.high<<8|b.low>>56, b.low<<8|uint64(c)
	b.sinceEnd++
	for pad := range 8 {
		if (b.high<<(32-pad)|b.low>>(32+pad))&bits48 == bzip2End {
			b.sinceEnd, b.begun = 0, true
		}
	}
	return c
}

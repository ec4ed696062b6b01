// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"io"

	"github.com/gojail/gojail/gojail/source"
	"github.com/gojail/gojail/gojail/unpack"
)

// Limits of a source, by its size as it is stored, so that a small source cannot cause much work. A tree of programs is
// compressed to a tenth, and has a file for each 300 bytes of its archive.
const (
	bytesFree    = 4 << 30
	bytesFactor  = 100
	entriesFree  = 200_000
	entrySizeMin = 32
)

// setLimits sets the limits that the request does not have.
func (b *builder) setLimits(layers []*source.Layer) {
	if b.Limits.Bytes == 0 {
		b.bounded = true
		b.Limits.Bytes, b.Limits.Sparse = unpack.DefaultLimits.Bytes, unpack.DefaultLimits.Sparse
	}
	if b.Limits.Entries == 0 {
		b.Limits.Entries = unpack.DefaultLimits.Entries
		if size := measureLayers(layers); size >= 0 {
			b.Limits.Entries = min(b.Limits.Entries, entriesFree+size/entrySizeMin)
		}
	}
}

// measureLayers returns the size of the layers as they are stored, or -1 if it is unknown. The source states these
// sizes.
func measureLayers(layers []*source.Layer) (size int64) {
	for _, l := range layers {
		if l.Size <= 0 {
			return -1
		}
		size += min(l.Size, unpack.DefaultLimits.Bytes)
	}
	return size
}

var errExpands = errors.New(
	"the layers are more than 100 times as large as their archive; if the source is trusted, write --max-size")

// expansionReader fails when the layers have become too large for the bytes that were read of the source.
type expansionReader struct {
	io.Reader
	b *builder
}

func (e *expansionReader) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	e.b.plain += int64(n)
	if e.b.bounded && e.b.plain > bytesFree+bytesFactor*e.b.stored.Load() {
		return n, errExpands
	}
	return n, err
}

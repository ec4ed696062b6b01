// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/source"
	"github.com/gojail/gojail/gojail/unpack"
)

// TestLimitsOfSmallSources: what a request does not limit follows from the size of the source.
func TestLimitsOfSmallSources(t *testing.T) {
	most := unpack.DefaultLimits
	for name, test := range map[string]struct {
		request unpack.Limits
		sizes   []int64
		want    unpack.Limits
	}{
		"small":           {unpack.Limits{}, []int64{1000, 600}, unpack.Limits{Entries: 200_050, Bytes: most.Bytes, Sparse: most.Sparse}},
		"large":           {unpack.Limits{}, []int64{1 << 30, 600}, most},
		"unknown size":    {unpack.Limits{}, []int64{1000, 0}, most},
		"overflow":        {unpack.Limits{}, []int64{1 << 62, 1 << 62, 1 << 62}, most},
		"negative":        {unpack.Limits{}, []int64{-1}, most},
		"given":           {unpack.Limits{Entries: 7, Bytes: 8}, []int64{1000}, unpack.Limits{Entries: 7, Bytes: 8}},
		"given size only": {unpack.Limits{Bytes: 1 << 50}, []int64{3200}, unpack.Limits{Entries: 200_100, Bytes: 1 << 50}},
	} {
		b := &builder{Request: &Request{Limits: test.request}}
		var layers []*source.Layer
		for _, size := range test.sizes {
			layers = append(layers, &source.Layer{Size: size})
		}
		b.setLimits(layers)
		assert.Equal(t, test.want, b.Limits, name)
		assert.Equal(t, test.request.Bytes == 0, b.bounded, name)
	}
}

// emptyReader reads anything, without work.
type emptyReader struct{}

func (emptyReader) Read(p []byte) (int, error) { return len(p), nil }

// TestExpansionOfLayers: the stream ends where it is too large for what has been read of the source, of all layers
// together.
func TestExpansionOfLayers(t *testing.T) {
	for stored, want := range map[int64]int64{0: 4 << 30, 1000: 4<<30 + 100_000, 1 << 30: 104 << 30} {
		b := &builder{bounded: true}
		b.stored.Store(stored)
		read := func(r io.Reader) (int64, error) {
			return io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, make([]byte, 1<<20))
		}
		first, err := read(io.LimitReader(&expansionReader{emptyReader{}, b}, 1<<30))
		require.NoError(t, err)
		second, err := read(&expansionReader{emptyReader{}, b})
		require.ErrorIs(t, err, errExpands)
		assert.InDelta(t, want, first+second, 2<<20)
	}
}

// TestSmallSourcesOfLargeFiles: archives of a few kilobytes, whose files would take minutes to read, are refused by
// their headers, and so is a directory with such a file; nothing is written.
func TestSmallSourcesOfLargeFiles(t *testing.T) {
	for name, script := range map[string]string{
		"a terabyte, PAX":     "truncate -s 1000G f; tar --create --sparse --format=posix f",
		"a terabyte, GNU":     "truncate -s 1000G f; tar --create --sparse --format=gnu f",
		"a terabyte, PAX 0.1": "truncate -s 1000G f; tar --create --sparse --format=posix --sparse-version=0.1 f",
		"a terabyte, PAX 0.0": "truncate -s 1000G f; tar --create --sparse --format=posix --sparse-version=0.0 f",
		"data at the end":     "truncate -s 1000G f; echo end >>f; tar --create --sparse --format=posix f",
		"many":                "for i in 1 2 3 4 5; do truncate -s 4G f$i; echo end >>f$i; done; tar --create --sparse --format=posix f?",
		"a directory":         "truncate -s 1000G f",
		"compressed":          "truncate -s 1000G f; tar --create --gzip --sparse --format=posix f",
	} {
		t.Run(name, func(t *testing.T) {
			jail, dir := newJail(t)
			cmd := exec.Command("sh", "-ec", script)
			cmd.Dir = t.TempDir()
			archive, err := cmd.Output()
			require.NoError(t, err)
			require.Less(t, len(archive), 100_000)
			path := filepath.Join(t.TempDir(), "small")
			require.NoError(t, os.WriteFile(path, archive, 0o644))
			r := request("tar:" + path)
			if len(archive) == 0 {
				r = request("dir:" + cmd.Dir)
			}
			r.Limits = unpack.Limits{}
			_, err = Build(context.Background(), jail, r)
			require.ErrorContains(t, err, "the sparse files have more than 17179869184 bytes together; if the source is trusted, write --max-size")
			mustBeClean(t, dir)
			waitForNoChildren(t, dir)
		})
	}
}

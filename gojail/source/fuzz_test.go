// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"io"
	"os/exec"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/source/sourcetest"
)

// FuzzDecompress compares with the decoders alone: what they read whole is read here as well, unless something follows it.
func FuzzDecompress(f *testing.F) {
	text := sourcetest.Tar(f, "a=1")
	for _, program := range []string{"gzip", "zstd", "bzip2"} {
		cmd := exec.Command(program, "--stdout")
		cmd.Stdin = bytes.NewReader(text)
		packed, err := cmd.Output()
		require.NoError(f, err)
		for _, stored := range []string{string(packed), string(packed) + string(packed), string(packed) + zeros(5), string(packed) + "x", skippable("x") + string(packed)} {
			f.Add([]byte(stored))
		}
	}
	const most = 1 << 20
	f.Fuzz(func(t *testing.T, stored []byte) {
		kind := findCompression(stored)
		var reference io.Reader
		var err error
		switch input := bytes.NewReader(stored); kind {
		case "gzip":
			reference, err = gzip.NewReader(input)
		case "zstd":
			reference, err = zstd.NewReader(input, zstd.WithDecoderMaxWindow(windowMax), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		case "bzip2":
			reference = bzip2.NewReader(input)
		default:
			return
		}
		var want []byte
		if err == nil {
			want, err = io.ReadAll(io.LimitReader(reference, most))
		}
		var got []byte
		decoder, ours := decompress(context.Background(), &oddReader{bytes.NewReader(stored)}, nil)
		if ours == nil {
			got, ours = io.ReadAll(io.LimitReader(decoder, most))
			decoder.Close()
		}
		if err == nil && ours == nil {
			assert.Equal(t, want, got)
		}
		if err == nil && ours != nil {
			assert.Equal(t, "zstd", kind, "%v", ours) // it takes a byte after the last frame for nothing
			assert.ErrorContains(t, ours, "trailing data")
		}
		if err != nil && ours == nil { // padding
			assert.True(t, stored[len(stored)-1] == 0 || errors.Is(err, io.ErrUnexpectedEOF), "%v", err)
		}
	})
}

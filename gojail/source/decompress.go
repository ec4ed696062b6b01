// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// windowMax is the limit of the window of zstd: its own maximum at level --ultra.
const windowMax = 128 << 20

var compressions = []struct{ name, magic string }{
	{"gzip", "\x1f\x8b"}, {"zstd", "\x28\xb5\x2f\xfd"}, {"xz", "\xfd7zXZ\x00"}, {"bzip2", "BZh"},
}

// findCompression returns the compression of a stream by its first bytes, or "".
func findCompression(head []byte) string {
	for _, c := range compressions {
		if bytes.HasPrefix(head, []byte(c.magic)) {
			return c.name
		}
	}
	return ""
}

// decompress returns the decompressed stream. Its memory is bounded whatever the stream says.
func decompress(ctx context.Context, r io.Reader) (io.ReadCloser, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	head, err := buffered.Peek(6)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch kind := findCompression(head); kind {
	case "":
		return io.NopCloser(buffered), nil
	case "gzip":
		decoder, err := gzip.NewReader(buffered)
		return decoder, explainError(kind, err)
	case "zstd":
		decoder, err := zstd.NewReader(buffered, zstd.WithDecoderMaxWindow(windowMax), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, explainError(kind, err)
		}
		return decoder.IOReadCloser(), nil
	case "xz", "bzip2":
		cmd := exec.CommandContext(ctx, kind, "-dc")
		cmd.Stdin = buffered
		return startReader(cmd, "decompress it with "+kind)
	}
	return nil, fmt.Errorf("unknown compression")
}

func explainError(kind string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot decompress it with %s: %w", kind, err)
}

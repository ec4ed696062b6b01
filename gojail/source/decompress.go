// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

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

// confiner returns a command that runs a program as a filter which can do nothing else, whatever its input makes it do.
type confiner func(ctx context.Context, program string, args ...string) (*exec.Cmd, error)

// decompress returns the decompressed stream. Its memory is bounded whatever the stream says.
func decompress(ctx context.Context, r io.Reader, confine confiner) (io.ReadCloser, error) {
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
	case "bzip2":
		return io.NopCloser(bzip2Reader{bzip2.NewReader(buffered)}), nil
	case "xz":
		return decompressXZ(ctx, buffered, confine)
	}
	return nil, fmt.Errorf("unknown compression")
}

type bzip2Reader struct{ io.Reader }

func (b bzip2Reader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	var damaged bzip2.StructuralError
	if errors.As(err, &damaged) {
		err = explainError("bzip2", err)
	}
	return n, err
}

// xzMemory is the limit of xz in MiB. A stream says how large its dictionary is, up to 4 GiB; xz -9 makes one of 64 MiB.
const xzMemory = 256

// xzReader is the output of xz.
type xzReader struct{ io.ReadCloser }

// decompressXZ runs xz, which is written in C, unlike all other decompressors.
func decompressXZ(ctx context.Context, r io.Reader, confine confiner) (io.ReadCloser, error) {
	cmd, err := confine(ctx, "xz", "--decompress", "--stdout", fmt.Sprintf("--memlimit-decompress=%dMiB", xzMemory))
	if err != nil {
		return nil, fmt.Errorf("cannot decompress it with xz: %w", err)
	}
	cmd.Stdin = r
	output, err := startReader(cmd, "decompress it with xz")
	if err != nil {
		return nil, err
	}
	return xzReader{output}, nil
}

func (x xzReader) Read(p []byte) (int, error) {
	n, err := x.ReadCloser.Read(p)
	if err != nil && strings.Contains(err.Error(), "Memory usage limit reached") {
		err = fmt.Errorf("cannot decompress it with xz in %d MiB of memory; if the source is trusted, decompress it first", xzMemory)
	}
	return n, err
}

func explainError(kind string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot decompress it with %s: %w", kind, err)
}

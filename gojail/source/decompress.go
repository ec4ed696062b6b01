// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/gojail/gojail/internal/tarblock"
)

var compressions = []struct{ name, magic string }{
	{"gzip", "\x1f\x8b"}, {"zstd", "\x28\xb5\x2f\xfd"}, {"xz", xzMagic}, {"bzip2", "BZh"},
}

// magicMax is the length of the longest magic number of a compression.
const magicMax = 6

// findCompression returns the compression of a stream by its first bytes, or "".
func findCompression(head []byte) string {
	for _, c := range compressions {
		if bytes.HasPrefix(head, []byte(c.magic)) {
			return c.name
		}
	}
	if isSkippable(head) { // pzstd begins with such a frame
		return "zstd"
	}
	return ""
}

// confiner returns a command that runs a program as a filter. Whatever its input is, the program can do nothing else.
type confiner func(ctx context.Context, program string, args ...string) (*exec.Cmd, error)

// decompress returns the decompressed stream. Its memory is bounded, whatever the stream says.
//
// A stream of each compression may consist of several members, of which some may be empty. After the last one, NUL
// bytes are padding, and anything else is an error.
func decompress(ctx context.Context, r io.Reader, confine confiner) (io.ReadCloser, error) {
	input := &inputReader{r: r}
	buffered := bufio.NewReaderSize(input, 64<<10)
	head, err := buffered.Peek(foreignMax)
	if err != nil && err != io.EOF {
		return nil, err
	}
	kind := findCompression(head)
	if kind == "" || tarblock.IsHeader(head) { // the first name of an archive may begin with any bytes
		return io.NopCloser(buffered), checkForeign(head)
	}
	open := map[string]func() (io.ReadCloser, error){
		"gzip":  func() (io.ReadCloser, error) { return openGzip(buffered) },
		"zstd":  func() (io.ReadCloser, error) { return openZstd(buffered) },
		"bzip2": func() (io.ReadCloser, error) { return openBzip2(buffered), nil },
		"xz":    func() (io.ReadCloser, error) { return openXZ(ctx, buffered, confine) },
	}[kind]
	d := &decoder{kind: kind, input: input}
	d.ReadCloser, err = open()
	return d, d.explain(err)
}

// inputReader remembers the error with which the stored form of a layer ended.
type inputReader struct {
	r   io.Reader
	err error
}

func (i *inputReader) Read(p []byte) (int, error) {
	n, err := i.r.Read(p)
	if err != nil && err != io.EOF {
		i.err = err
	}
	return n, err
}

// decoder is a decompressed stream that explains its errors.
type decoder struct {
	io.ReadCloser
	kind  string
	input *inputReader
}

func (d *decoder) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	return n, d.explain(err)
}

// explain returns an error for people. It returns an error of the input as it is, because the compression did not cause
// it.
func (d *decoder) explain(err error) error {
	var explained *explainedError
	switch {
	case err == nil, err == io.EOF, errors.As(err, &explained):
		return err
	case d.kind != "xz" && d.input.err != nil: // xz has ended whenever its output has
		return d.input.err
	case errors.Is(err, errTrailing):
		return fmt.Errorf("trailing data after the end of the %s stream, where only NUL bytes may follow: it is "+
			"damaged, or another file was appended to it", d.kind)
	case errors.Is(err, errCut), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("cannot decompress it with %s: unexpected EOF: it is cut off: get it again", d.kind)
	}
	return fmt.Errorf("cannot decompress it with %s: %w", d.kind, err)
}

// explainedError is an error that needs no further explanation.
type explainedError struct{ error }

// errTrailing means that bytes other than NUL follow the end of a compressed stream.
var errTrailing = errors.New("trailing data")

// errCut means that the input ends within a stream.
var errCut = errors.New("unexpected EOF")

// checkTail returns nil if another member of a stream begins, io.EOF at the end of the stream, and errTrailing if
// anything but NUL bytes follows the last member. isMember reports whether a member begins with these bytes.
func checkTail(input *bufio.Reader, isMember func(head []byte) bool) error {
	head, err := input.Peek(magicMax)
	if len(head) == 0 || err != nil && err != io.EOF {
		return err
	}
	if isMember(head) {
		return nil
	}
	for {
		c, err := input.ReadByte()
		if err != nil {
			return err
		}
		if c != 0 {
			return errTrailing
		}
	}
}

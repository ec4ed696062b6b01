// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bufio"
	"io"

	"github.com/klauspost/compress/gzip"
)

// gzipMembers are the members of a gzip stream. The decoder itself would read NUL bytes after the last member as a
// header.
type gzipMembers struct {
	*gzip.Reader
	input *bufio.Reader
}

func openGzip(input *bufio.Reader) (io.ReadCloser, error) {
	decoder, err := gzip.NewReader(input)
	if err != nil {
		return nil, err
	}
	decoder.Multistream(false)
	return &gzipMembers{decoder, input}, nil
}

func (g *gzipMembers) Read(p []byte) (int, error) {
	for {
		n, err := g.Reader.Read(p)
		if err != io.EOF || n > 0 {
			if err == io.EOF {
				err = nil // again with the next read
			}
			return n, err
		}
		if err := checkTail(g.input, isGzip); err != nil {
			return 0, err
		}
		if err := g.Reset(g.input); err != nil {
			return 0, convertEOF(err)
		}
		g.Multistream(false)
	}
}

func isGzip(head []byte) bool { return findCompression(head) == "gzip" }

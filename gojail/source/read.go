// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

// errTooLarge means that a decompressed layer has more bytes than the caller allows.
var errTooLarge = errors.New("the decompressed layer is too large; if the source is trusted, raise --max-size")

// Read decompresses a layer from its stored form, calls use with the tar stream, and returns the digest of the stored
// form. The tar stream ends with an error if it is not the one that the manifest and the configuration name. confine
// starts a decompressor that is another program.
func (l *Layer) Read(ctx context.Context, stored io.Reader, bytesMax int64, confine confiner,
	use func(io.Reader) error) (digest string, err error) {
	outer := newSum(stored, l.Digest)
	plain, err := decompress(ctx, outer, confine)
	if err != nil {
		return "", err
	}
	defer plain.Close()
	inner := newSum(io.LimitReader(plain, bytesMax+1), l.diffID)
	check := func() error {
		if inner.count > bytesMax {
			return errTooLarge
		}
		if _, err := io.Copy(io.Discard, outer); err != nil { // bytes after the compressed data count for the digest
			return err
		}
		if l.Size != 0 && outer.count != l.Size {
			return fmt.Errorf("it has %d bytes instead of %d", outer.count, l.Size)
		}
		if l.Digest != "" && outer.digest() != l.Digest {
			return fmt.Errorf("it has the digest %s instead of %s: it is damaged, or not what the manifest names",
				outer.digest(), l.Digest)
		}
		if l.diffID != "" && inner.digest() != l.diffID {
			return fmt.Errorf(
				"its content has the digest %s instead of %s: it is damaged, or not what the configuration names",
				inner.digest(), l.diffID)
		}
		return nil
	}
	if err := use(&checkedReader{inner, check}); err != nil {
		return "", err
	}
	return outer.digest(), nil
}

// summingReader computes the digest of the bytes that it reads.
type summingReader struct {
	r         io.Reader
	algorithm string
	sum       hash.Hash
	count     int64
}

// newSum returns a reader that computes a digest to be compared with another one: by SHA-512 if the other one is,
// otherwise by SHA-256.
func newSum(r io.Reader, other string) *summingReader {
	if strings.HasPrefix(other, "sha512:") {
		return &summingReader{r: r, algorithm: "sha512:", sum: sha512.New()}
	}
	return &summingReader{r: r, algorithm: "sha256:", sum: sha256.New()}
}

func (s *summingReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.sum.Write(p[:n])
	s.count += int64(n)
	return n, err
}

func (s *summingReader) digest() string { return s.algorithm + hex.EncodeToString(s.sum.Sum(nil)) }

// checkedReader replaces the end of a stream by the error of a check.
type checkedReader struct {
	r     io.Reader
	check func() error
}

func (c *checkedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err == io.EOF {
		if checkErr := c.check(); checkErr != nil {
			err = checkErr
		}
	}
	return n, err
}

// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// readSparse writes the content of a file to w, and reads no holes: their zeros come from memory, not from storage
// (lseek(2), SEEK_DATA). For a file system that does not report holes, the whole file is one piece of data.
func (l *lister) readSparse(w io.Writer, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	for at, end := int64(0), info.Size(); at < end; {
		data, err := f.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // a hole until the end
			return writeZeros(w, end-at)
		}
		if err != nil {
			data = at
		}
		hole, err := f.Seek(data, unix.SEEK_HOLE)
		if err != nil {
			hole = end
		}
		if _, err := f.Seek(data, io.SeekStart); err != nil {
			return err
		}
		if err := writeZeros(w, data-at); err != nil {
			return err
		}
		// The structs hide WriteTo and ReadFrom: with them, CopyBuffer would leave the buffer unused.
		piece := struct{ io.Reader }{io.LimitReader(f, hole-data)}
		n, err := io.CopyBuffer(struct{ io.Writer }{w}, piece, l.buffer)
		// Users may shorten a file while it is read.
		if err == nil && n < hole-data {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		at = hole
	}
	return nil
}

func writeZeros(w io.Writer, count int64) error {
	for count > 0 {
		n, err := w.Write(zeros[:min(count, int64(len(zeros)))])
		if count -= int64(n); err != nil {
			return err
		}
	}
	return nil
}

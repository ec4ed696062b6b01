// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/tarblock"
)

// documentMax is the limit of a manifest, an index or a configuration.
const documentMax = 4 << 20

// blobs are the named files of a layout or an archive.
type blobs interface {
	openBlob(name string) (io.ReadCloser, error)
	io.Closer
}

// readDocument reads a small file.
func readDocument(b blobs, name string) ([]byte, error) {
	file, err := b.openBlob(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", oneline.Printable(name), err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, documentMax+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", oneline.Printable(name), oneline.Cause(err))
	}
	if len(text) > documentMax {
		return nil, fmt.Errorf("%s is larger than %d bytes", oneline.Printable(name), documentMax)
	}
	return text, nil
}

// hasDocument reports whether a file exists.
func hasDocument(b blobs, name string) bool {
	file, err := b.openBlob(name)
	if err == nil {
		file.Close()
	}
	return err == nil
}

// dirBlobs are files below a directory. Symbolic links in it cannot lead out of it.
type dirBlobs struct{ root *os.Root }

func openDirBlobs(dir string) (blobs, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", dir, oneline.Cause(err))
	}
	return dirBlobs{root}, nil
}

func (d dirBlobs) Close() error { return d.root.Close() }

func (d dirBlobs) openBlob(name string) (io.ReadCloser, error) {
	file, err := d.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, oneline.Cause(err)
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		file.Close()
		return nil, errors.Join(err, errors.New("is not a regular file"))
	}
	return file, nil
}

// membersMax is the limit of the members of an archive of blobs.
const membersMax = 100_000

// tarBlobs are the members of a tar file, which is read in place.
type tarBlobs struct {
	file    *os.File
	members map[string]member
}

// member is the position of a member in a tar file; link is set for a link to another member.
type member struct {
	start, size int64
	link        string
}

func openTarBlobs(name string) (blobs, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", name, oneline.Cause(err))
	}
	t := &tarBlobs{file, map[string]member{}}
	if err := t.readMembers(); err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return t, nil
}

func (t *tarBlobs) readMembers() error {
	if info, err := t.file.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, errors.New("it must be a regular file"))
	}
	head := make([]byte, foreignMax)
	n, _ := t.file.ReadAt(head, 0)
	if kind := findCompression(head[:n]); kind != "" && !tarblock.IsHeader(head[:n]) {
		return fmt.Errorf("it is compressed with %s; decompress it first", kind)
	}
	if err := checkForeign(head[:n]); err != nil {
		return err
	}
	archive := tar.NewReader(t.file)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is not a tar file, or it is damaged: %w", err)
		}
		if len(t.members) >= membersMax {
			return fmt.Errorf("it has more than %d members", membersMax)
		}
		name := path.Clean("/" + h.Name)
		switch h.Typeflag {
		case tar.TypeReg, tar.TypeCont:
			if h.PAXRecords["GNU.sparse.major"] != "" || h.PAXRecords["GNU.sparse.map"] != "" {
				return fmt.Errorf("%s is a sparse file in it; make the archive anew without --sparse",
					oneline.Printable(h.Name))
			}
			start, err := t.file.Seek(0, io.SeekCurrent)
			if err != nil {
				return err
			}
			t.members[name] = member{start: start, size: h.Size}
		case tar.TypeGNUSparse:
			return fmt.Errorf("%s is a sparse file in it; make the archive anew without --sparse",
				oneline.Printable(h.Name))
		case tar.TypeSymlink:
			t.members[name] = member{link: path.Join(path.Dir(name), h.Linkname)}
		case tar.TypeLink:
			t.members[name] = member{link: path.Clean("/" + h.Linkname)}
		}
	}
}

func (t *tarBlobs) Close() error { return t.file.Close() }

func (t *tarBlobs) openBlob(name string) (io.ReadCloser, error) {
	name = path.Clean("/" + name)
	for range 3 { // old versions of docker made links to links
		m, ok := t.members[name]
		if !ok {
			return nil, errors.New("the archive does not contain it")
		}
		if m.link == "" {
			return io.NopCloser(io.NewSectionReader(t.file, m.start, m.size)), nil
		}
		name = m.link
	}
	return nil, errors.New("too many links in the archive")
}

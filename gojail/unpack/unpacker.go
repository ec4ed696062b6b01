// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rmtree"
)

// Limits of one entry. The kernel has the same limits; a message that names the entry is better than its errno.
const (
	nameMax  = 255
	pathMax  = 4095
	xattrMax = 64 << 10
)

// depthMax is the limit of the components of a path. The kernel has none. Each component is looked up by its own path
// from the root, so the time for an entry grows with the square of its depth.
const depthMax = 256

// unpacker unpacks one layer into the root directory of this process.
type unpacker struct {
	policy Policy
	limits Limits
	before Result // what lower layers have used of the limits
	result Result

	position  int64        // of the entry in the archive, from 1; Result.Entries counts implied directories as well
	attribute bool         // the next entry may be the extended attribute that an entry of Solaris announced
	seed      maphash.Seed // random, so that no archive can choose names with equal hashes
	// The keys are hashes of paths.
	upper   map[uint64]struct{} // paths of this layer, and the directories above them
	emptied map[uint64]struct{} // directories without files of lower layers, see removeLowerIn
	absent  map[uint64]struct{} // device nodes that were left out: hard links to them are left out as well
	times   map[uint64]times    // times of directories, which are set at the end
	global  map[string]string   // records of global headers
	parent  struct{ name, path string }
	buffer  []byte
}

func newUnpacker(policy Policy, limits Limits, before Result) *unpacker {
	return &unpacker{policy: policy, limits: limits, before: before, seed: maphash.MakeSeed(),
		upper:   map[uint64]struct{}{},
		emptied: map[uint64]struct{}{}, absent: map[uint64]struct{}{}, times: map[uint64]times{},
		global: map[string]string{}, buffer: make([]byte, 128<<10)}
}

// unpackStream unpacks a tar stream, and reads it to its end. The umask is 0 meanwhile, so that files get exactly the
// modes of the archive.
func (u *unpacker) unpackStream(r io.Reader) error {
	defer unix.Umask(unix.Umask(0))
	blocks := newStream(r)
	archive := tar.NewReader(blocks)
	last := ""
	for {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("the archive is damaged after %d entries%s: %w", u.position, last, err)
		}
		u.position++
		// The description is that of the archive: unpackEntry changes the type of some entries.
		what := fmt.Sprintf("%s %s", describeType(header.Typeflag), quoteName(header.Name))
		if err := u.unpackEntry(header, archive); err != nil {
			return fmt.Errorf("entry %d of the archive, %s: %w", u.position, what, err)
		}
		last = ", the last one " + what
	}
	trailing, err := blocks.readEnd() // the digest of the layer covers these bytes, too
	if err != nil {
		return err
	}
	if trailing > 0 {
		u.result.leaveOut(leftTrailing, trailing)
	}
	return u.restoreTimes("/")
}

// quoteName returns a quoted name of an archive, cut where it is long.
func quoteName(name string) string {
	if len(name) > 200 {
		name = name[:200] + "..."
	}
	return `"` + oneline.Printable(name) + `"`
}

// unpackEntry unpacks one entry. It counts it first, so that limits hold whatever the entry is.
func (u *unpacker) unpackEntry(h *tar.Header, body io.Reader) error {
	if err := u.countName(); err != nil {
		return err
	}
	if skip, err := u.adaptEntry(h); skip || err != nil {
		return err
	}
	if err := u.countBytes(h); err != nil {
		return err
	}
	name, err := cleanName(h.Name)
	if err != nil {
		return err
	}
	if name == "/" {
		if h.Typeflag != tar.TypeDir {
			return errors.New("the root of a tree must be a directory")
		}
		return u.setDirectory("/", h)
	}
	if u.policy.Whiteouts && isOfAufs(name) {
		return nil
	}
	base := path.Base(name)
	dir, err := u.findParent(path.Dir(name), true)
	if err != nil {
		return err
	}
	if u.policy.Whiteouts && strings.HasPrefix(base, whiteoutPrefix) {
		return u.applyWhiteout(dir, base)
	}
	full := path.Join(dir, base)
	if err := checkPath(full); err != nil {
		return err
	}
	// Creating the entry changes the times of its directory.
	if err := u.keepTimes(dir); err != nil {
		return err
	}
	u.addUpper(full)
	return u.createEntry(full, h, body)
}

// countBytes adds the bytes of a file to the result, and fails if the result exceeds a limit.
func (u *unpacker) countBytes(h *tar.Header) error {
	if !isFile(h) {
		return nil
	}
	if h.Size < 0 || h.Size > u.limits.Bytes-u.before.Bytes-u.result.Bytes {
		return fmt.Errorf("the files have more than %d bytes together; if the source is trusted, raise --max-size",
			u.limits.Bytes)
	}
	u.result.Bytes += h.Size
	if !isSparse(h) {
		return nil
	}
	u.result.Sparse += h.Size
	if limit := u.limits.Sparse; limit > 0 && u.before.Sparse+u.result.Sparse > limit {
		return fmt.Errorf(
			"the sparse files have more than %d bytes together; if the source is trusted, write --max-size", limit)
	}
	return nil
}

// isSparse reports whether the archive leaves out the holes of a file.
func isSparse(h *tar.Header) bool {
	if h.Typeflag == tar.TypeGNUSparse {
		return true
	}
	for key := range h.PAXRecords { // of versions 0.0, 0.1 and 1.0
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// countName counts an entry, or a directory that an entry implies.
func (u *unpacker) countName() error {
	if u.result.Entries++; u.before.Entries+u.result.Entries > u.limits.Entries {
		return fmt.Errorf("there are more than %d entries, implied directories counted; if the source is trusted, "+
			"raise --max-entries", u.limits.Entries)
	}
	return nil
}

// cleanName returns a name of an archive as an absolute path in the target. path.Clean removes ".." at the beginning,
// so that the name stays inside, as in the root directory of a process.
func cleanName(name string) (string, error) {
	clean := path.Clean("/" + name)
	if len(clean) > pathMax {
		return "", fmt.Errorf("the name is longer than %d bytes", pathMax)
	}
	if strings.ContainsRune(clean, 0) {
		return "", errors.New("the name has a NUL byte")
	}
	for part := range strings.SplitSeq(clean, "/") {
		if len(part) > nameMax {
			return "", fmt.Errorf("a component of the name is longer than %d bytes", nameMax)
		}
	}
	return clean, nil
}

// checkPath fails if a real path exceeds a limit.
func checkPath(full string) error {
	switch {
	case len(full) > pathMax:
		return fmt.Errorf("the path is longer than %d bytes", pathMax)
	case strings.Count(full, "/") > depthMax:
		return fmt.Errorf("the path has more than %d components", depthMax)
	}
	return nil
}

// removeExisting removes whatever is at a path, and what the unpacker remembers of it.
func (u *unpacker) removeExisting(full string) error {
	delete(u.times, u.hashPath(full))
	delete(u.absent, u.hashPath(full))
	err := unix.Unlink(full)
	if err == unix.ENOENT {
		return nil
	}
	u.parent.name = "" // what is removed may be above the remembered directory, or a symbolic link that leads to it
	if err == nil {
		return nil
	}
	// No user can write the tree, so nothing creates files in it meanwhile.
	return rmtree.Remove(path.Dir(full), path.Base(full), time.Now().Add(time.Hour))
}

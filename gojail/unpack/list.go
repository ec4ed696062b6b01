// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
)

// listHeader is the first line of the list of a tree. The format is that of mtree(5) with full paths, which gomtree and
// bsdtar read: one line for each file. Names are escaped as by vis(3), in octal. The order is that of a walk that reads
// each directory sorted by bytes, so that two lists can be compared without holding them in memory.
const listHeader = "#mtree"

// xattrsMark is the second line of a list that has the extended attributes. Earlier lists do not have them.
const xattrsMark = "# xattrs"

// lister writes the list of the root directory of this process.
type lister struct {
	out    *bufio.Writer
	buffer []byte
	linked map[uint64]linkedFile // files with names that are still to come, by inode
}

// linkedFile is the digest of a file with several names, which is read once.
type linkedFile struct {
	sum  [sha256.Size]byte // of the content
	left uint64            // names that are still to come
}

// listTree writes the list of the root directory of this process.
func listTree(w io.Writer) error {
	l := newLister(w)
	fmt.Fprintf(l.out, "%s\n%s\n", listHeader, xattrsMark)
	if err := l.listPath("/"); err != nil {
		return err
	}
	return l.out.Flush()
}

func newLister(w io.Writer) *lister {
	return &lister{bufio.NewWriterSize(w, 64<<10), make([]byte, 128<<10), map[uint64]linkedFile{}}
}

// listPath writes the line of a path and of everything below it.
func (l *lister) listPath(full string) error {
	var st unix.Stat_t
	if err := unix.Lstat(full, &st); err != nil {
		return fmt.Errorf("cannot stat %s: %w", quoteName(full), err)
	}
	words, err := l.describeFile(full, &st)
	if err != nil {
		return err
	}
	fmt.Fprintf(l.out, "%s %s\n", escapeName("."+strings.TrimSuffix(full, "/")), strings.Join(words, " "))
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	names, err := readNames(full)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := l.listPath(path.Join(full, name)); err != nil {
			return err
		}
	}
	return nil
}

// describeFile returns the keywords of mtree(5) for one file.
func (l *lister) describeFile(full string, st *unix.Stat_t) ([]string, error) {
	words := []string{fmt.Sprintf("uid=%d", st.Uid), fmt.Sprintf("gid=%d", st.Gid),
		fmt.Sprintf("mode=%04o", st.Mode&0o7777)}
	kind := "file"
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		kind = "dir"
	case unix.S_IFLNK:
		target, err := readLink(full)
		if err != nil {
			return nil, err
		}
		kind, words = "link", append(words[:2], "link="+escapeName(target))
	case unix.S_IFIFO:
		kind = "fifo"
	case unix.S_IFSOCK:
		kind = "socket"
	case unix.S_IFCHR, unix.S_IFBLK:
		kind = map[uint32]string{unix.S_IFCHR: "char", unix.S_IFBLK: "block"}[st.Mode&unix.S_IFMT]
		words = append(words, fmt.Sprintf("device=%d,%d", unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))))
	case unix.S_IFREG:
		sum, err := l.findDigest(full, st)
		if err != nil {
			return nil, err
		}
		words = append(words, fmt.Sprintf("size=%d", st.Size), fmt.Sprintf("time=%d.%09d", st.Mtim.Sec, st.Mtim.Nsec),
			"sha256digest="+hex.EncodeToString(sum[:]))
	}
	xattrs, err := describeXattrs(full)
	if err != nil {
		return nil, err
	}
	return slices.Concat([]string{"type=" + kind}, words, xattrs), nil
}

// findDigest returns the SHA-256 of a regular file. If the file has several names, it computes it for the first one
// only.
func (l *lister) findDigest(full string, st *unix.Stat_t) ([sha256.Size]byte, error) {
	file, known := l.linked[st.Ino]
	if !known {
		sum, err := l.computeDigest(full, st)
		if err != nil || st.Nlink == 1 {
			return sum, err
		}
		file = linkedFile{sum, uint64(st.Nlink)}
	}
	if file.left--; file.left > 0 {
		l.linked[st.Ino] = file
	} else {
		delete(l.linked, st.Ino)
	}
	return file.sum, nil
}

// computeDigest returns the SHA-256 of a regular file. It fails if the file is not that of st: users may exchange files
// while the tree is read. It leaves the time of access, and does not wait if a FIFO is there now.
func (l *lister) computeDigest(full string, st *unix.Stat_t) (digest [sha256.Size]byte, err error) {
	f, err := os.OpenFile(full, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOATIME, 0)
	if err != nil {
		return digest, fmt.Errorf("cannot read %s: %w", quoteName(full), errors.Unwrap(err))
	}
	defer f.Close()
	var opened unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &opened); err != nil || opened.Ino != st.Ino ||
		opened.Mode&unix.S_IFMT != unix.S_IFREG {
		return digest, fmt.Errorf("%s changed while it was read", quoteName(full))
	}
	sum := sha256.New()
	if err := l.readSparse(sum, f); err != nil {
		return digest, fmt.Errorf("cannot read %s: %w", quoteName(full), oneline.Cause(err))
	}
	return [sha256.Size]byte(sum.Sum(nil)), nil
}

// escapeName returns a name without blanks, backslashes and unprintable bytes, which are escaped as by strvis(3) with
// VIS_OCTAL.
func escapeName(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || c == '\\' || c == '#' || c == '=' {
			fmt.Fprintf(&b, `\%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

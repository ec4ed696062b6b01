// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// room is the space of a file system as df(1) reports it, in kB or in inodes.
type room struct{ size, used, free int64 }

// percentUsed returns df's percentage of the space available to users, rounded up.
func (r room) percentUsed() int64 {
	if r.used+r.free <= 0 {
		return 0
	}
	return (100*r.used + r.used + r.free - 1) / (r.used + r.free)
}

// bound is one limit of a line; the zero value is no limit.
type bound struct {
	text    string
	n       int64
	percent bool
}

// parseBound parses one limit.
func parseBound(text string, inodes bool) (b bound, err error) {
	b.text = text
	if b.n, b.percent, err = parsePercent(text); b.percent || text == "" {
		return b, err
	}
	if inodes {
		b.n, err = parseCount(text)
	} else {
		b.n, err = parseSize(text)
	}
	return b, err
}

// spaceRule is the assertion of a line: a size between two bounds, or one bound for free or
// used space.
type spaceRule struct {
	what      string // "size", "free" or "used"
	inodes    bool
	low, high bound
}

// newSpaceParser returns the parser of check_fs_size, check_fs_free, check_fs_used, and the
// same checks of inodes.
func newSpaceParser(what string, inodes bool) func(*Line, []string) (assertion, error) {
	return func(_ *Line, args []string) (assertion, error) {
		most := 2
		if what == "size" {
			most = 3
		}
		if err := checkArguments(args, 1, most); err != nil {
			return nil, err
		}
		r, path := spaceRule{what: what, inodes: inodes}, args[0]
		if text := explainTransient(path); text != "" {
			return nil, errors.New(text)
		}
		to := []*bound{&r.low, &r.high}
		if what == "used" {
			to = to[1:]
		}
		for i, text := range args[1:] {
			var err error
			if *to[i], err = parseBound(text, inodes); err != nil {
				return nil, err
			}
			if to[i].percent && what == "size" {
				return nil, fmt.Errorf("%.30q: write a size", text)
			}
		}
		return func(_ context.Context, s *System) (string, error) { return r.checkPath(s, path) }, nil
	}
}

// alwaysFull are types of file systems without free space.
var alwaysFull = []string{"squashfs", "iso9660", "erofs", "cramfs", "romfs"}

// checkPath compares the space of a file system with the assertion.
func (r spaceRule) checkPath(s *System, path string) (string, error) {
	at, err := s.readMounts()
	if err != nil {
		return "", err
	}
	m, mounted := at.find(path)
	if !mounted {
		return "", Remark(path + " is not a mount point, which NHC ignores")
	}
	if slices.Contains(alwaysFull, m.kind) && r.what != "size" {
		return "", Remark(fmt.Sprintf("%s is a %s, which is always full", path, m.kind))
	}
	var st unix.Statfs_t
	switch err := unix.Statfs(decodeOctal(m.point), &st); {
	case err == unix.EACCES: // FUSE, mounted by a user for that user alone
		return "", fmt.Errorf("cannot read the space of %s: %w", path, err)
	case err != nil:
		return fmt.Sprintf("%s does not report its space: %v", path, err), nil
	case st.Type == unix.AUTOFS_SUPER_MAGIC:
		return "", Remark(path + " is an idle automount")
	}
	if computeRoom(&st, r.inodes).size == 0 {
		return "", Remark(path + " has no size of its own, which NHC ignores")
	}
	if fault := r.judgeRoom(computeRoom(&st, r.inodes)); fault != "" {
		return path + " " + fault, nil
	}
	return "", nil
}

// computeRoom returns the space or the inodes of a file system.
func computeRoom(st *unix.Statfs_t, inodes bool) room {
	if inodes {
		return room{int64(st.Files), int64(st.Files - st.Ffree), int64(st.Ffree)}
	}
	unit := st.Frsize
	if unit == 0 {
		unit = st.Bsize
	}
	kb := func(blocks uint64) int64 { return int64((blocks*uint64(unit) + 1023) / 1024) }
	return room{kb(st.Blocks), kb(st.Blocks - st.Bfree), kb(st.Bavail)}
}

// judgeRoom returns the fault; a file system without blocks or inodes of its own has none.
func (r spaceRule) judgeRoom(has room) string {
	unit := ""
	if r.inodes {
		unit = " inodes"
	}
	is := map[string]int64{"size": has.size, "free": has.free, "used": has.used}[r.what]
	share := has.percentUsed()
	if r.what == "free" {
		share = 100 - share
	}
	less := func(b bound) bool { return b.percent && share < b.n || !b.percent && is < b.n }
	switch {
	case has.size == 0:
	case r.low.text != "" && less(r.low):
		return fmt.Sprintf("has less than %s%s %s", r.low.text, unit,
			map[string]string{"size": "in all", "free": "free"}[r.what])
	case r.high.text != "" && r.what == "used" && !less(r.high):
		return fmt.Sprintf("has %s or more%s used", r.high.text, unit)
	case r.high.text != "" && r.what == "size" && is > r.high.n:
		return fmt.Sprintf("has more than %s%s in all", r.high.text, unit)
	}
	return ""
}

// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
)

// addProcess adds the version that is the root of a process. It adds an unknown use if it does not recognise the
// version, no note names it, and the jail may be of the store.
func (f *finder) addProcess(r state.Record, jail, by string, known bool) {
	root, err := r.Root()
	if err != nil {
		if f.isStored(jail) && !known {
			f.addUnknown("%s: %v", by, oneline.Cause(err))
		}
		return
	}
	defer root.Close()
	version, err := f.recognise(int(root.Fd()))
	switch {
	case version != "":
		f.addUse(version, by)
	case f.isStored(jail) && !known:
		f.addUnknown("%s: cannot determine which version it has: %v", by, err)
	}
}

// recognise returns the version of an open root. It recognises a directory by its device and inode, which nobody in the
// jail can change, and an image or an overlay by the version file, which root must own.
func (f *finder) recognise(root int) (string, error) {
	var st unix.Statx_t
	if err := unix.Statx(root, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_BASIC_STATS,
		&st); err != nil {
		return "", fmt.Errorf("cannot stat its root: %w", err)
	}
	if file := f.roots[store.FileID{Dev: unix.Mkdev(st.Dev_major, st.Dev_minor), Ino: st.Ino}]; file != "" {
		return file, nil
	}
	fd, err := rootpath.Open(root, contract.VersionFile, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK,
		unix.RESOLVE_NO_XDEV|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_BENEATH)
	if err != nil {
		return "", fmt.Errorf("cannot open %s in its root: %w", contract.VersionFile, err)
	}
	file := os.NewFile(uintptr(fd), contract.VersionFile)
	defer file.Close()
	var about unix.Stat_t
	if err := unix.Fstat(fd, &about); err != nil {
		return "", err
	}
	if about.Mode&unix.S_IFMT != unix.S_IFREG || about.Uid != 0 && !node.IsImage(root) {
		return "", fmt.Errorf("%s in its root is not a file of root's", contract.VersionFile)
	}
	text, err := io.ReadAll(io.LimitReader(file, 256))
	if err != nil {
		return "", fmt.Errorf("cannot read %s in its root: %w", contract.VersionFile, oneline.Errno(err))
	}
	version := strings.TrimSpace(string(text))
	if !contract.IsName(version) {
		return "", errors.New(contract.VersionFile + " in its root names no version")
	}
	return version, nil
}

// SPDX-License-Identifier: Apache-2.0

package trusted

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// sizeMax is the limit of a file, in bytes, so that a wrong path does not fill memory.
const sizeMax = 1 << 20

// Identity identifies one version of a file.
type Identity struct {
	Dev, Ino                                 uint64
	Size                                     int64
	MtimeSec, MtimeNsec, CtimeSec, CtimeNsec int64
}

// ReadFile reads a file that only root can have written, and returns its version. what names the file in errors, as in
// "the configuration". It checks the ownership of the descriptor from which it reads.
func ReadFile(path, what string) ([]byte, Identity, error) {
	var id Identity
	if !filepath.IsAbs(path) {
		return nil, id, fmt.Errorf("%s: %s must be an absolute path", path, what)
	}
	if err := Parents(path); err != nil {
		return nil, id, err
	}
	// A FIFO in place of the file must not block root.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, id, fmt.Errorf("%s: cannot read %s: %w", path, what, errors.Unwrap(err))
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, id, fmt.Errorf("%s: cannot read %s: %w", path, what, err)
	}
	if err := Check(path, &st, unix.S_IFREG); err != nil {
		return nil, id, err
	}
	data, err := io.ReadAll(io.LimitReader(f, sizeMax+1))
	if err != nil {
		return nil, id, fmt.Errorf("%s: cannot read %s: %w", path, what, errors.Unwrap(err))
	}
	if len(data) > sizeMax {
		return nil, id, fmt.Errorf("%s: %s is larger than %d bytes", path, what, sizeMax)
	}
	return data, identity(&st), nil
}

// Identify returns the current version of a file, or nil if it does not exist.
func Identify(path string) (*Identity, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err == unix.ENOENT {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: cannot stat it: %w", path, err)
	}
	id := identity(&st)
	return &id, nil
}

// String returns the seven numbers in the format of docs/state.md.
func (i Identity) String() string {
	return fmt.Sprintf("%d %d %d %d %d %d %d", i.Dev, i.Ino, i.Size, i.MtimeSec, i.MtimeNsec, i.CtimeSec, i.CtimeNsec)
}

func identity(st *unix.Stat_t) Identity {
	return Identity{
		Dev: uint64(st.Dev), Ino: st.Ino, Size: st.Size,
		MtimeSec: st.Mtim.Sec, MtimeNsec: st.Mtim.Nsec,
		CtimeSec: st.Ctim.Sec, CtimeNsec: st.Ctim.Nsec,
	}
}

// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/oneline"
)

// openTar opens a tar file, compressed or not.
func (s Source) openTar(context.Context, Options) (*Image, error) {
	file, err := os.Open(s.rest)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", s.rest, oneline.Cause(err))
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("cannot stat %s: %w", s.rest, oneline.Cause(err))
	}
	layer := &Layer{Size: info.Size(), Open: func(context.Context) (io.ReadCloser, error) { return file, nil }}
	return &Image{Layers: []*Layer{layer}, close: func() error { file.Close(); return nil }}, nil
}

// openDir reads a directory by GNU tar, which keeps sparse files, hard links and attributes, and follows no symbolic
// link. It leaves out mounts in the directory.
func (s Source) openDir(context.Context, Options) (*Image, error) {
	var st unix.Stat_t
	if err := unix.Stat(s.rest, &st); err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", s.rest, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil, fmt.Errorf("%s is not a directory", s.rest)
	}
	return newProgramImage("read the directory "+s.rest, "tar", "--create", "--file=-", "--format=posix",
		"--numeric-owner", "--sparse", "--sort=name",
		"--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime", // the same tree gives the same digest
		"--xattrs", "--xattrs-include=*", "--one-file-system", "--anchored", "--exclude=./"+contract.RootLock,
		"--directory="+s.rest, "."), nil
}

// openDebootstrap opens a tree that mmdebstrap makes.
func (s Source) openDebootstrap(_ context.Context, options Options) (*Image, error) {
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		return nil, fmt.Errorf("cannot make a tree of Debian: %w; install mmdebstrap", err)
	}
	args := append([]string{"--quiet", "--format=tar"}, options.Debootstrap...)
	return newProgramImage("make a tree of Debian "+s.rest, "mmdebstrap", append(args, s.rest, "-")...), nil
}

// newProgramImage returns an image whose only layer is the output of a program.
func newProgramImage(what, program string, args ...string) *Image {
	return &Image{Layers: []*Layer{{Open: func(ctx context.Context) (io.ReadCloser, error) {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
		return startReader(cmd, what)
	}}}}
}

// SPDX-License-Identifier: Apache-2.0

package mount

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/oneline"
)

// maskPath covers path with an empty directory or /dev/null, so that it stays what it is for programs that look for it.
// A missing path needs no mask (OCI runtime-spec, config-linux.md, "Masked Paths").
func (r *jailRoot) maskPath(path string) error {
	target, err := r.openExisting(path)
	if err != nil || target < 0 {
		return err
	}
	defer unix.Close(target)
	dir, err := isDirectory(target)
	if err != nil {
		return err
	}
	mask, err := openMask(path, dir, openJail{r.path, r.fd})
	if err != nil {
		return err
	}
	defer unix.Close(mask)
	return attachOnTarget(mask, target, path)
}

// openMask returns what covers a path, as a detached tree: an empty read-only directory, or /dev/null.
func openMask(path string, dir bool, jail openJail) (int, error) {
	if !dir {
		// With nodev, reading the file would fail instead of returning nothing.
		t, err := newBind(specs.Mount{Destination: path, Type: "bind", Source: "/dev/null",
			Options: []string{"ro", "nosuid", "noexec", "dev"}}, jail)
		return t.fd, err
	}
	t, err := newFilesystem(specs.Mount{Destination: path, Type: "tmpfs", Source: "gojail-mask",
		Options: []string{"mode=555", "size=4k", "nosuid", "nodev", "noexec"}})
	if err != nil {
		return -1, err
	}
	// The option "ro" would not do it: newFilesystem leaves a tmpfs writable until the view is complete.
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		unix.Close(t.fd)
		return -1, &mountError{Op: "mount_setattr", Target: path, Flags: []string{"ro"}, Err: err}
	}
	return t.fd, nil
}

// coverFile covers a file with a file of other content. A missing file stays missing.
func (r *jailRoot) coverFile(f plan.File) error {
	target, err := r.openExisting(f.Path)
	if err != nil || target < 0 {
		return err
	}
	defer unix.Close(target)
	// The content lies in a file system of its own, of which only the file is mounted: the jail's storage is not
	// changed.
	t, err := newFilesystem(specs.Mount{Destination: f.Path, Type: "tmpfs", Source: "gojail-file",
		Options: []string{"mode=755", "nosuid", "nodev", "noexec"}})
	if err != nil {
		return err
	}
	defer unix.Close(t.fd)
	fd, err := unix.Openat(t.fd, "file", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o444)
	if err != nil {
		return &mountError{Op: "create file", Target: f.Path, Err: err}
	}
	_, err = unix.Write(fd, []byte(f.Content))
	unix.Close(fd)
	if err != nil {
		return &mountError{Op: "write", Target: f.Path, Err: err}
	}
	o, err := parseMountOptions([]string{"bind", "ro", "nosuid", "nodev", "noexec"})
	if err != nil {
		return err
	}
	bound, err := cloneOfFile(t.fd, "file", o)
	if err != nil {
		return err
	}
	defer unix.Close(bound)
	if err := setAttributes(bound, o); err != nil {
		return &mountError{Op: "mount_setattr", Target: f.Path, Err: err}
	}
	return attachOnTarget(bound, target, f.Path)
}

// cloneOfFile returns a clone of a file in a detached file system, as a detached tree. It attaches the file system on
// "/" for the time of the clone: before Linux 6.15, open_tree(2) fails with EINVAL for a mount outside the caller's
// namespace.
func cloneOfFile(fs int, name string, o mountOptions) (int, error) {
	if err := attachOnRoot(fs, "tmpfs"); err != nil {
		return -1, err
	}
	fd, err := unix.OpenTree(fs, name, o.openTreeFlags())
	if err != nil {
		err = &mountError{Op: "open_tree", Target: name, Err: err}
	}
	if err := oneline.Both(err, detachRoot(fs)); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// makeReadonly bind-mounts path on itself, read-only, with all mounts below it. The bind mount is needed because
// mount_setattr(2) changes whole mounts, and the path may be any directory of one.
func (r *jailRoot) makeReadonly(path string) error {
	target, err := r.openExisting(path)
	if err != nil || target < 0 {
		return err
	}
	defer unix.Close(target)
	o, err := parseMountOptions([]string{"rbind", "ro"})
	if err != nil {
		return err
	}
	fd, err := unix.OpenTree(target, "", o.openTreeFlags()|unix.AT_EMPTY_PATH)
	if err != nil {
		return &mountError{Op: "open_tree", Target: path, Err: err}
	}
	defer unix.Close(fd)
	if err := setAttributes(fd, o); err != nil {
		return &mountError{Op: "mount_setattr", Target: path, Flags: []string{"ro"}, Err: err}
	}
	return attachOnTarget(fd, target, path)
}

// openExisting opens path in the view, or returns -1 if it does not exist: kernels differ in what /proc and /sys have.
func (r *jailRoot) openExisting(path string) (int, error) {
	fd, err := r.openInView(path, unix.O_PATH)
	if err == unix.ENOENT || err == unix.ENOTDIR {
		return -1, nil
	}
	return fd, r.resolveError(path, err)
}

// attachOnTarget attaches a detached tree on an open target, whatever its path leads to by now.
func attachOnTarget(fd, target int, path string) error {
	if err := unix.MoveMount(fd, "", target, "",
		unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return &mountError{Op: "move_mount", Target: path, Err: err}
	}
	return nil
}

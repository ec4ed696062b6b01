// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/rootpath"
)

// MissingTargets returns the targets that do not exist in the open root of a jail.
func MissingTargets(c *config.Config, j *config.Jail, v *plan.View, root int) ([]plan.Target, error) {
	var missing []plan.Target
	for _, t := range plan.Targets(c, j, v, os.Stat) {
		st, err := statTarget(root, t)
		switch {
		case err == unix.ENOENT:
			missing = append(missing, t)
		case err != nil:
			return nil, config.JailErrorf(j.Name, "mount target %s in %s cannot be reached: %w", t.Path, j.Root, err)
		case (st.Mode&unix.S_IFMT == unix.S_IFDIR) != t.Dir:
			return nil, config.JailErrorf(j.Name, "mount target %s in %s must be a %s; move the existing file away",
				t.Path, j.Root, map[bool]string{true: "directory", false: "file"}[t.Dir])
		}
	}
	return missing, nil
}

// statTarget returns the status of a mount target. For a file it is that of the name itself, even of a symbolic link,
// as openTarget opens it.
func statTarget(root int, t plan.Target) (st unix.Stat_t, err error) {
	fd, err := rootpath.OpenInRoot(root, t.Path, targetFlags(t.Dir))
	if err != nil {
		return st, err
	}
	defer unix.Close(fd)
	return st, unix.Fstat(fd, &st)
}

// MakeTargets creates the missing targets on the jail's storage and returns them. If the jail shows the node's machine
// ID and has no such file, MakeTargets creates it as a mount target, empty as machine-id(5) demands of images. Nodes
// take turns (flock on ROOT/.gojail.lock).
func MakeTargets(c *config.Config, j *config.Jail, v *plan.View, deadline time.Time) ([]plan.Target, error) {
	root, err := node.OpenJail(j)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	missing, err := MissingTargets(c, j, v, root)
	if err != nil || j.Writable != "" {
		return nil, err // the template has them in an overlay
	}
	if j.Identity && !node.IsImage(root) && node.LacksMachineID(root) {
		missing = append(missing, plan.Target{Path: node.MachineID})
	}
	if len(missing) == 0 {
		return nil, nil
	}
	if node.IsImage(root) {
		return nil, config.JailErrorf(j.Name, "%s is an image and lacks %d mount targets, such as the %s; %s",
			j.Root, len(missing), missing[0], Remedy(j.Name, true))
	}
	// Targets that another node creates while this one waits for the lock are no error, see makeTarget.
	lock, err := lockRoot(j, root, deadline)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	defer unix.Umask(unix.Umask(0))
	var made []plan.Target
	for _, t := range missing {
		if err := makeTarget(root, t, &made); err != nil {
			return made, explainWriteError(j, "create the "+t.String(), err)
		}
	}
	return made, nil
}

// lockRoot takes the lock that nodes take before they create targets in a jail's open root. It opens the file in that
// root: the path of the root may lead elsewhere by now.
func lockRoot(j *config.Jail, root int, deadline time.Time) (*os.File, error) {
	path := filepath.Join(j.Root, contract.RootLock)
	fd, err := unix.Openat(root, contract.RootLock, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, explainWriteError(j, "create the file /"+contract.RootLock, err)
	}
	file := os.NewFile(uintptr(fd), path)
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	if err := filelock.WaitFile(ctx, file); err != nil {
		file.Close()
		return nil, config.JailError(j.Name, filelock.Explain(path, err))
	}
	return file, nil
}

// explainWriteError returns the error of a write to a jail's storage, with its most likely cause and remedy.
func explainWriteError(j *config.Jail, attempt string, err error) error {
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return config.JailErrorf(j.Name,
			"the storage does not let root of this node write to %s (cannot %s: %w): is root squashed there? "+
				"Run it on a node that the export trusts (no_root_squash, exports(5)), or on the server",
			j.Root, attempt, err)
	case errors.Is(err, unix.EROFS):
		return config.JailErrorf(j.Name,
			"%s is read-only on this node (cannot %s); run it on a node that mounts it writable", j.Root, attempt)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return config.JailErrorf(j.Name,
			"the file system of %s is full (cannot %s: %w); free space and inodes there, then run it again",
			j.Root, attempt, err)
	}
	return config.JailErrorf(j.Name, "cannot %s in %s: %w", attempt, j.Root, err)
}

// makeTarget creates one target and the directories above it. Every parent is resolved inside the root, so that no
// symlink of the jail leads out of it.
func makeTarget(root int, t plan.Target, made *[]plan.Target) error {
	parent, err := rootpath.OpenBeneath(root, filepath.Dir(t.Path), rootpath.InRoot)
	if err == unix.ENOENT {
		if err := makeTarget(root, plan.Target{Path: filepath.Dir(t.Path), Dir: true}, made); err != nil {
			return err
		}
		parent, err = rootpath.OpenBeneath(root, filepath.Dir(t.Path), rootpath.InRoot)
	}
	if err != nil {
		return err
	}
	defer unix.Close(parent)
	dir, err := unix.Openat(parent, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if err := makeEntry(dir, filepath.Base(t.Path), t.Dir); err != nil {
		if err == unix.EEXIST { // another node has just created it, or it is a dangling symlink
			if _, err := statTarget(root, t); err == nil {
				return nil
			}
			return fmt.Errorf("a symbolic link to %s, which does not exist in the jail, is in its place; create that "+
				"directory, or remove the link",
				rootpath.ReadLink(root, t.Path))
		}
		return err
	}
	*made = append(*made, t)
	return nil
}

// makeEntry creates a directory or an empty file. It never opens an existing one (O_EXCL): users may have put anything
// there.
func makeEntry(dir int, name string, isDir bool) error {
	if isDir {
		return unix.Mkdirat(dir, name, 0o755)
	}
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/trusted"
)

// MakeLocal creates the node-local directories of a jail below scratch, each with the owner and mode of the directory
// in the jail, so that tasks may do there what they may do in the jail's. It is called before a jail is assembled, with
// the jail's open root, and does not change existing directories.
func MakeLocal(c *config.Config, j *config.Jail, root int) error {
	for _, path := range j.Local {
		like, err := node.StatIn(root, path)
		if err == unix.ENOENT {
			return config.JailErrorf(j.Name, "mount target %s is missing in %s; %s", path, j.Root, Remedy(j.Name,
				node.IsImage(root)))
		}
		if err != nil {
			return config.JailErrorf(j.Name, "local directory %s cannot be reached in %s: %w", path, j.Root, err)
		}
		if err := makeBelow(c.Scratch, plan.LocalDir(c, j, path), like); err != nil {
			return config.JailErrorf(j.Name, "cannot create the local directory %s on this node: %w",
				plan.LocalDir(c, j, path), err)
		}
	}
	return nil
}

// makeBelow creates scratch and the missing directories of path, which lies below scratch. The last directory gets the
// owner and mode of like; only root may be able to replace the others. They are checked before anything is created, so
// that nothing is created in a user's directory, and again when they exist, because a user may have created one of them
// in a sticky directory meanwhile.
func makeBelow(scratch, path string, like unix.Stat_t) error {
	if err := trusted.Parents(path); err != nil {
		return err
	}
	if err := os.MkdirAll(scratch, 0o711); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		return err
	}
	if err := trusted.Parents(path); err != nil {
		return err
	}
	if st, err := os.Lstat(path); err == nil {
		if !st.IsDir() {
			return fmt.Errorf("another file is in its place")
		}
		return nil
	}
	return makeLike(path, like)
}

// makeLike creates a directory under a temporary name and renames it, so that it appears with its owner
// and mode or not at all.
func makeLike(dir string, like unix.Stat_t) error {
	temporary, err := os.MkdirTemp(filepath.Dir(dir), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(temporary) // only after an error: otherwise it was renamed
	// By a descriptor: the new owner may replace the name if the directory above it is sticky.
	made, err := os.OpenFile(temporary, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer made.Close()
	if err := made.Chown(int(like.Uid), int(like.Gid)); err != nil {
		return err
	}
	if err := unix.Fchmod(int(made.Fd()), like.Mode&0o7777); err != nil {
		return err
	}
	// Another launch may have been first: rename(2) replaces an empty directory, and fails for one that is in use
	// already.
	if err := os.Rename(temporary, dir); err != nil && !rootpath.Exists(dir) {
		return err
	}
	return nil
}

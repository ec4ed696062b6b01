// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/procfs"
	"github.com/gojail/gojail/internal/rootpath"
)

// OpenRange opens the root of the jail's template, mapped by the user namespace ids, and its data directories and other
// mounts of the site, mapped by the user namespace data, as detached trees. The first is the root.
//
// The root is cloned without the mounts on it: the caller attaches the template's mounts to it unmapped, and mounts
// that the node adds later do not appear.
//
// OpenRange requires Linux 5.12 and file systems with id-mapped mounts (mount_setattr(2), "ID-mapped mounts": ext4,
// xfs, btrfs and others; nfs and lustre do not have them).
func OpenRange(c *config.Config, j *config.Jail, stateDir string, template state.Record, ids, data int) (trees []Tree,
	err error) {
	namespace, err := template.Namespace("mnt")
	if err != nil {
		return nil, err
	}
	defer namespace.Close()
	view, err := ReadMountView(strconv.Itoa(template.PID))
	if err != nil {
		return nil, err
	}
	defer view.Close()
	// The namespace and the root are open now: an unchanged start time proves that both are the template's.
	if start, err := procfs.StartTime(template.PID); err != nil || start != template.Start {
		return nil, fmt.Errorf("the template of jail %s has just ended; try again", j.Name)
	}
	root, err := view.findRoot()
	if err != nil {
		return nil, fmt.Errorf("the template of jail %s has no root in its mount table: %w; run: gojail reload", j.Name,
			err)
	}
	// The clone will be nosuid, but users may reach the same files through other mounts of this node.
	if err := RefuseSuid(c, regionOf(root)); err != nil {
		return nil, addRemedy(err)
	}
	facts, err := node.ReadHostWith(c, node.ReadHardware(c), j, stateDir, view.root)
	if err != nil {
		return nil, err
	}
	dirs, err := plan.DataDirs(c, j, facts)
	if err != nil {
		return nil, err
	}
	// The places are closed after an error, too: openPlaces then returns those that it has opened.
	others, err := view.openPlaces(plan.OtherMounts(c, j, facts, dirs))
	defer closePlaces(others)
	if err != nil {
		return nil, err
	}
	places, err := view.openPlaces(dirs)
	defer closePlaces(places)
	if err != nil {
		return nil, err
	}
	// Before the template's namespace is entered: the sockets are named by their paths on the node.
	covers, err := view.openCovers(c, j)
	if err != nil {
		return nil, err
	}
	err = inMountNamespace(int(namespace.Fd()), func() (err error) {
		trees, err = view.openRange(others, places, ids, data)
		return err
	})
	if err != nil {
		closeTrees(covers)
		return nil, err
	}
	return append(trees, covers...), nil
}

// place is an open directory in a view, with its real path: the sandbox attaches the directory's clone there, without
// following symbolic links.
type place struct {
	fd   int
	path string
}

// openPlaces opens directories in a view. It leaves out those that no longer exist: the template may be older than a
// directory's removal.
func (v *mountView) openPlaces(dirs []string) ([]place, error) {
	var places []place
	for _, dir := range dirs {
		fd, err := rootpath.OpenBeneath(v.root, dir, rootpath.InRoot)
		if err == unix.ENOENT {
			continue
		}
		if err != nil {
			return places, fmt.Errorf("cannot open data directory %s of the jail: %w", dir, err)
		}
		path, err := rootpath.OfDescriptor(fd, dir)
		places = append(places, place{fd, path})
		if err != nil {
			return places, err
		}
	}
	return places, nil
}

func closePlaces(places []place) {
	for _, p := range places {
		unix.Close(p.fd)
	}
}

// addRemedy adds to an error what a user can do about it.
func addRemedy(err error) error {
	if suid := (*SuidError)(nil); errors.As(err, &suid) {
		return fmt.Errorf("%w; use --jail-root=self, or ask your administrator to %s", err, suid.Remedy())
	}
	return err
}

// inMountNamespace runs f on a separate thread in a mount namespace: open_tree(2) clones only mounts of the caller's
// namespace. setns(2) refuses a thread that shares its root and working directory with others (CLONE_FS), so the thread
// gets its own first.
func inMountNamespace(namespace int, f func() error) error {
	return doOnThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return fmt.Errorf("cannot enter the jail's template: unshare: %w", err)
		}
		if err := unix.Setns(namespace, unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("cannot enter the jail's template: setns: %w", err)
		}
		return f()
	})
}

// openRange clones the root, other mounts of the site and the data directories of a view, in the order in which the
// caller attaches them. The thread must be in the view's namespace.
func (v *mountView) openRange(others, places []place, ids, data int) (trees []Tree, err error) {
	defer func() {
		if err != nil {
			closeTrees(trees)
			trees = nil
		}
	}()
	fd, err := CloneMapped(v.root, false, ids)
	if err != nil {
		return nil, explainMapError("the jail's root", err)
	}
	trees = append(trees, Tree{FD: fd, Destination: "/", Root: true})
	for _, p := range others {
		more, err := v.openOther(p, data)
		trees = append(trees, more...)
		if err != nil {
			return trees, err
		}
	}
	for _, p := range places {
		more, err := v.openData(p, data, true)
		trees = append(trees, more...)
		if err != nil {
			return trees, err
		}
	}
	return trees, nil
}

// CloneMapped clones the mount at an open directory, with the mounts below it if recursive is set, and maps its ids by
// a user namespace.
func CloneMapped(at int, recursive bool, namespace int) (int, error) {
	fd, err := cloneNosuid(at, recursive)
	if err != nil {
		return -1, err
	}
	if err := mapIDs(fd, namespace); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// cloneNosuid clones a mount without mapping its ids, and makes the clone private, nosuid and nodev: a set-user-ID file
// or a device node in it must give nobody rights.
func cloneNosuid(at int, recursive bool) (int, error) {
	o := mountOptions{recursive: recursive, set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	fd, err := unix.OpenTree(at, "", o.openTreeFlags()|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, &mountError{Op: "open_tree", Err: err}
	}
	if err := setAttributes(fd, o); err != nil {
		unix.Close(fd)
		return -1, &mountError{Op: "mount_setattr", Flags: []string{"nosuid", "nodev"}, Err: err}
	}
	return fd, nil
}

// MapIDs maps the ids of all mounts in a detached tree by a user namespace.
func MapIDs(tree, namespace int, source string) error {
	if err := mapIDs(tree, namespace); err != nil {
		return explainMapError(source+", or of a mount below it,", err)
	}
	return nil
}

// mapIDs sets the mapping of all mounts in a tree. The kernel accepts it once per mount, and only while the mount is in
// no namespace (mount_setattr(2), "ID-mapped mounts").
func mapIDs(tree, namespace int) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(namespace)}
	return unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
}

// explainMapError returns the error of a mount that cannot map ids, for users: the kernel's errno is a mere EINVAL, and
// only an administrator can choose another file system.
func explainMapError(what string, err error) error {
	return fmt.Errorf("--jail-root=range: the file system of %s cannot map ids (%w); "+
		"use --jail-root=self, or ask your administrator for ext4, xfs or btrfs there", what, err)
}

// SPDX-License-Identifier: Apache-2.0

// Package mount assembles a view: the planned mounts, and the mounts that a user asks for.
package mount

import (
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
)

// Apply assembles v in the mount namespace of the calling process and makes it the root of every process
// in the namespace. The namespace must be private to the caller, and all threads must be in it. root is
// the jail's root, which AttachRoot has mounted there; name is the jail's name, for messages. After an
// error the namespace is incomplete and must be discarded.
//
// Apply requires Linux 5.12 (mount_setattr(2)) and CAP_SYS_ADMIN.
func Apply(v *plan.View, name string, root int) error {
	defer unix.Umask(unix.Umask(0)) // so that files get exactly the modes of the view

	if err := makePrivate(); err != nil {
		return err
	}
	// Everything is opened before the first mount is attached: sources are paths of the host, and a mount of the view
	// could hide them.
	jail := openJail{v.Spec.Root.Path, root}
	r, err := openRoot(v, name, jail)
	if err != nil {
		return err
	}
	defer r.close()
	trees, err := openTrees(v.Spec.Mounts, jail)
	if err != nil {
		return config.JailError(name, err)
	}
	defer trees.close()
	data, err := openTrees(v.Data, jail)
	if err != nil {
		return config.JailError(name, err)
	}
	defer data.close()
	for i := range data {
		data[i].data = true
	}
	foreign, err := openTrees(v.Foreign, jail)
	if err != nil {
		return config.JailError(name, err)
	}
	defer foreign.close()

	// From here on the view's root is attached on "/", at the place of the mount that AttachRoot made.
	if err := detachRoot(root); err != nil {
		return config.JailError(name, err)
	}
	if err := r.attachAll(v, slices.Concat(trees, data), foreign); err != nil {
		return config.JailError(name, err)
	}
	if err := r.pivotRoot(); err != nil {
		return config.JailError(name, err)
	}
	return nil
}

// attachAll attaches the root, and then all mounts, devices, directories, links and files of the view. Masks come last:
// a mount that is attached later could show again what a mask hides.
func (r *jailRoot) attachAll(v *plan.View, trees, foreign treeList) error {
	if err := attachOnRoot(r.fd, r.path); err != nil {
		return err
	}
	for _, t := range trees {
		if err := r.placeTree(t); err != nil {
			return err
		}
	}
	for _, t := range foreign { // after the data, on which they lie
		_ = r.placeTree(t) // data without a mount point for it are noexec, so that no library of theirs is loaded
	}
	if v.Spec.Linux != nil {
		for _, d := range v.Spec.Linux.Devices {
			if err := r.makeDevice(d); err != nil {
				return err
			}
		}
	}
	for _, dir := range v.Dirs {
		fd, err := r.openTarget(dir, true)
		if err != nil {
			return err
		}
		unix.Close(fd)
	}
	for _, dir := range v.SharedDirs {
		if err := r.makeSharedDir(dir); err != nil {
			return err
		}
	}
	for _, l := range v.Links {
		if err := r.makeLink(l); err != nil {
			return err
		}
	}
	for _, f := range v.Files {
		if err := r.coverFile(f); err != nil {
			return err
		}
	}
	if v.Spec.Linux != nil {
		for _, path := range v.Spec.Linux.ReadonlyPaths {
			if err := r.makeReadonly(path); err != nil {
				return err
			}
		}
		for _, path := range v.Spec.Linux.MaskedPaths {
			if err := r.maskPath(path); err != nil {
				return err
			}
		}
	}
	return r.makeTmpfsReadonly(trees)
}

// makePrivate stops the propagation of mounts between this namespace and others. A namespace that is copied from the
// node's belongs to the same peer groups (mount_namespaces(7)): each mount of the view would appear on the node, and
// each unmount on the node would reach the view.
func makePrivate() error {
	attr := unix.MountAttr{Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &attr); err != nil {
		return &mountError{Op: "mount_setattr", Target: "/", Flags: []string{"rprivate"}, Err: err}
	}
	return nil
}

// openRoot opens the view's root as a detached tree: an empty tmpfs for a stage, an overlay if the view adds mount
// targets to the jail's root, else a clone of the jail's root.
func openRoot(v *plan.View, name string, jail openJail) (*jailRoot, error) {
	r := &jailRoot{name: name, path: jail.path, image: node.IsImage(jail.root), owned: map[uint64]bool{}}
	if v.TmpfsRoot {
		t, err := newFilesystem(specs.Mount{
			Destination: "/", Type: "tmpfs", Source: "gojail", Options: []string{"mode=755", "nosuid", "nodev", "ro"},
		})
		if err != nil {
			return nil, config.JailError(name, err)
		}
		r.fd, r.sealed = t.fd, t.sealed
		return r, r.addOwned(t.fd)
	}
	if len(v.Skeleton) > 0 {
		fd, err := openSkeleton(v, jail)
		if err != nil {
			return nil, config.JailError(name, err)
		}
		r.fd = fd
		return r, nil
	}
	options := append([]string{"rbind"}, v.RootOptions...)
	if v.Spec.Root.Readonly {
		options = append(options, "ro")
	}
	t, err := newBind(specs.Mount{Destination: "/", Type: "bind", Source: r.path, Options: options}, jail)
	if err != nil {
		return nil, config.JailError(name, err)
	}
	r.fd = t.fd
	return r, nil
}

// makeTmpfsReadonly makes the tmpfs mounts read-only that the view marks as sealed. Only now are all mount targets,
// links and device nodes in them created.
func (r *jailRoot) makeTmpfsReadonly(trees treeList) error {
	for _, t := range append(treeList{{fd: r.fd, sealed: r.sealed}}, trees...) {
		if !t.sealed {
			continue
		}
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
			return &mountError{Op: "mount_setattr", Target: t.destination(), Flags: []string{"ro"}, Err: err}
		}
	}
	return nil
}

// pivotRoot makes the view the root of all processes in this namespace and detaches the old root, as pivot_root(2)
// describes under "pivot_root(".", ".")": the old root is then mounted on the new one, and needs no directory in the
// jail, which may be read-only.
func (r *jailRoot) pivotRoot() error {
	if err := unix.Fchdir(r.fd); err != nil {
		return &mountError{Op: "fchdir", Target: r.path, Err: err}
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		e := &mountError{Op: "pivot_root", Target: r.path, Err: err}
		if err == unix.EINVAL {
			e.Detail = "the node's root must be a mount point other than an initramfs or a chroot"
		}
		return e
	}
	// The node's mounts lie below the old root: without MNT_DETACH, umount(2) fails with EBUSY.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return &mountError{Op: "umount", Target: "the old root", Flags: []string{"detach"}, Err: err}
	}
	if err := unix.Chdir("/"); err != nil {
		return &mountError{Op: "chdir", Target: "/", Err: err}
	}
	return nil
}

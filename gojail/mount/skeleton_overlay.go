// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"fmt"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/plan"
)

// PlanSkeleton adds to the view of a jail the mount targets that its open root lacks, if each job has changes to the
// root of its own. They are then created in an overlay, and need to exist neither on the jail's storage nor in its
// image.
func PlanSkeleton(c *config.Config, j *config.Jail, v *plan.View, root int) (err error) {
	if j.Writable != "" {
		v.Skeleton, err = MissingTargets(c, j, v, root)
	}
	return err
}

// openSkeleton returns an overlay of a jail's root in which the missing targets exist, as a detached mount. It is
// read-only: the overlays of jobs, which lie on top of it, hold their changes.
func openSkeleton(v *plan.View, jail openJail) (int, error) {
	layers, err := newFilesystem(plan.Tmpfs("/", "mode=700", "nosuid", "nodev"))
	if err != nil {
		return -1, err
	}
	defer unix.Close(layers.fd)
	// Overlayfs takes layers by their paths, and only if they are mounted.
	if err := attachOnRoot(layers.fd, "tmpfs"); err != nil {
		return -1, err
	}
	defer detachRoot(layers.fd) // the overlay has its own mounts of the layers (clone_private_mount)
	if err := makeLayers(layers.fd, jail.root); err != nil {
		return -1, fmt.Errorf("cannot create the layers of an overlay: %w", err)
	}
	// By descriptors: the path of the jail's root may lead elsewhere by now.
	at := func(fd int, path string) string { return fmt.Sprintf("/proc/self/fd/%d%s", fd, path) }
	places := []string{"lowerdir=" + at(jail.root, ""), "upperdir=" + at(layers.fd, "/upper"),
		"workdir=" + at(layers.fd, "/work")}
	t, err := newFilesystem(specs.Mount{Destination: "/", Type: "overlay", Source: "overlay",
		Options: slices.Concat(places, plan.OverlayOptions, v.RootOptions)})
	if err != nil {
		return -1, err
	}
	var made []plan.Target
	for _, target := range v.Skeleton {
		if err := makeTarget(t.fd, target, &made); err != nil {
			unix.Close(t.fd)
			return -1, fmt.Errorf("cannot create the %s in an overlay of %s: %w", target, jail.path, err)
		}
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		unix.Close(t.fd)
		return -1, &mountError{Op: "mount_setattr", Target: "/", Flags: []string{"ro"}, Err: err}
	}
	return t.fd, nil
}

// makeLayers creates the directories work and upper. upper gets the owner and mode of the jail's root, because the root
// of an overlay has those of its upper layer.
func makeLayers(dir, root int) error {
	var st unix.Stat_t
	if err := unix.Fstat(root, &st); err != nil {
		return err
	}
	for _, name := range []string{"work", "upper"} {
		if err := unix.Mkdirat(dir, name, 0o700); err != nil {
			return err
		}
	}
	if err := unix.Fchownat(dir, "upper", int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	return unix.Fchmodat(dir, "upper", st.Mode&0o7777, 0)
}

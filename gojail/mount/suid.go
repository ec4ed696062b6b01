// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/procfs"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/storage"
)

// SuidError is the error for a place at which a set-user-ID file of a jail could be executed.
type SuidError struct {
	path  string // path in the view of the node's users
	mount string // mount point through which the path is seen
	jail  string // jail that shows the path, instead of mount
}

func (e *SuidError) Error() string {
	where := "on the node in " + e.path
	if e.jail != "" {
		where = fmt.Sprintf("in jail %s, which shows %s", e.jail, e.path)
	}
	return "--jail-root=range: a set-user-ID file created in the jail could be executed " + where
}

// Remedy returns what an administrator can do about it.
func (e *SuidError) Remedy() string {
	above := filepath.Dir(e.path)
	remount := "mount it nosuid: mount -o remount,bind,nosuid " + e.mount
	switch {
	case e.jail != "":
		return fmt.Sprintf(`give jail %s no_new_privs = true, or its mounts the option "nosuid"`, e.jail)
	case e.mount == "/":
		return "restrict a directory above it: chmod 700 " + above
	case above == "/" || squashesRoot(e.path): // a closed directory would be closed to gojail, too
		return remount
	}
	return fmt.Sprintf(
		"mount it nosuid (mount -o remount,bind,nosuid %s), or restrict a directory above it: chmod 700 %s", e.mount,
		above)
}

// squashesRoot reports whether a directory lies on storage on which root of this node is another user.
func squashesRoot(dir string) bool {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return storage.SquashesRoot(fd) == storage.Yes
}

// RefuseSuid fails if users of this node can execute set-user-ID files created in a region: by any path of the node, or
// of a jail in which set-user-ID files work. A nosuid mount is not enough: users who see more than the region through
// one mount may move a file out of the region (rename(2) works within a mount), to where another mount shows it.
func RefuseSuid(c *config.Config, own region) error {
	// The mount table adds this suffix to the root of a mount if that directory was removed.
	if strings.HasSuffix(own.path, "//deleted") {
		return errors.New("the jail's root was removed on this node; run: gojail reload")
	}
	views, err := openUsersViews()
	if err != nil {
		return err
	}
	defer func() {
		for _, v := range views {
			v.Close()
		}
	}()
	// Each region to which files can be moved from a known one is judged in the same way, until no new one is found.
	reach := []region{own}
	for i := 0; i < len(reach); i++ {
		for _, v := range views {
			more, err := v.findRegions(reach[i])
			if err != nil {
				return err
			}
			for _, r := range more {
				if !slices.Contains(reach, r) {
					reach = append(reach, r)
				}
			}
		}
		if err := refuseJails(c, views[0], reach[i]); err != nil {
			return err
		}
	}
	return nil
}

// openUsersViews returns the mount tables of this node's users: slurmd's, of which this process has a copy, and that of
// process 1, which differs if slurmd's unit has mounts of its own. A process 1 that root cannot inspect, as in some
// containers, is omitted.
func openUsersViews() ([]*mountView, error) {
	own, err := ReadMountView("self")
	if err != nil {
		return nil, err
	}
	if ns, err := os.Readlink("/proc/self/ns/mnt"); err == nil && procfs.LivesIn(1, ns) {
		return []*mountView{own}, nil
	}
	first, err := ReadMountView("1")
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return []*mountView{own}, nil
	}
	if err != nil {
		own.Close()
		return nil, err
	}
	return []*mountView{own, first}, nil
}

// findRegions returns the regions to which users can move files from r, and fails if they can execute
// set-user-ID files there.
func (v *mountView) findRegions(r region) ([]region, error) {
	var more []region
	for _, m := range v.mounts {
		shown, path := regionOf(m), m.Mountpoint
		if shown.contains(r) {
			path = filepath.Join(path, relativeTo(r.path, shown.path))
		} else if !r.contains(shown) {
			continue
		}
		open, err := v.isReachable(m, path)
		if err != nil {
			return nil, err
		}
		options := strings.Split(m.Options, ",")
		switch {
		case !open:
		case !slices.Contains(options, "nosuid"):
			return nil, &SuidError{path: path, mount: m.Mountpoint}
		// Through a read-only mount, rename(2) fails, so no file leaves the region.
		case shown != r && shown.contains(r) && !slices.Contains(options, "ro"):
			more = append(more, shown)
		}
	}
	return more, nil
}

// isReachable reports whether users can reach a path through this mount: no other mount covers it, and no directory
// above it belongs to root and is closed to others. The path comes from the kernel, which names real directories only:
// it is resolved name by name, and a symbolic link on the way means that the directory was replaced or covered.
func (v *mountView) isReachable(m *mountinfo.Info, path string) (bool, error) {
	fd, err := unix.FcntlInt(uintptr(v.root), unix.F_DUPFD_CLOEXEC, 0)
	defer func() { unix.Close(fd) }()
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if err != nil || name == "" {
			break
		}
		var st unix.Stat_t
		if err = unix.Fstat(fd, &st); err != nil {
			break
		}
		if st.Uid == 0 && st.Mode&0o011 == 0 {
			return false, nil // only root can enter it
		}
		var next int
		next, err = rootpath.OpenBeneath(fd, name, unix.RESOLVE_NO_SYMLINKS)
		unix.Close(fd)
		fd = next
	}
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
		return false, nil // another mount covers a directory above it
	default:
		return false, fmt.Errorf("cannot look up %s: %w", path, err)
	}
	id, err := storage.MountID(fd)
	return id == m.ID, err // another id: a mount on the same path covers m
}

// refuseJails fails if a jail in which set-user-ID files work shows a region. With no_new_privs, execve(2) ignores the
// set-user-ID bit.
func refuseJails(c *config.Config, v *mountView, r region) error {
	for _, name := range c.JailNames() {
		j := c.Jails[name]
		if j.Isolation.NoNewPrivs {
			continue
		}
		root := specs.Mount{Destination: "/", Type: "bind", Source: j.Root,
			Options: append([]string{"rbind"}, j.Options...)}
		for _, m := range append([]specs.Mount{root}, plan.ConfiguredMounts(j)...) {
			o, err := parseMountOptions(m.Options)
			if m.Type != "bind" || err == nil && o.set&unix.MOUNT_ATTR_NOSUID != 0 {
				continue
			}
			shown, err := v.findRegionsShownBy(m.Source, j.Root, o.recursive)
			if err != nil {
				return fmt.Errorf("cannot determine what jail %s shows of %s: %w", name, m.Source, err)
			}
			for _, other := range shown {
				if r.contains(other) || other.contains(r) {
					return &SuidError{path: m.Source, jail: name}
				}
			}
		}
	}
	return nil
}

// openJailSource opens a source of a jail that has a directory as its root.
func openJailSource(source, jail string) (int, error) {
	if !config.Under(source, jail) {
		return OpenSource(source, jail, -1)
	}
	root, err := unix.Open(jail, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	return OpenSource(source, jail, root)
}

// findRegionsShownBy returns the regions that a bind mount of a jail shows, except those that are nosuid on the node:
// the clone of a mount has its options.
func (v *mountView) findRegionsShownBy(source, jail string, recursive bool) ([]region, error) {
	fd, err := openJailSource(source, jail)
	if err == unix.ENOENT || err == unix.ENOTDIR {
		return nil, nil // missing, or in an image, in which nobody can create a file
	}
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	at, err := v.mountOf(fd)
	if err != nil {
		return nil, err
	}
	own, err := v.RegionOf(fd)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(at.Mountpoint, relativeTo(own.path, at.Root))
	var shown []region
	for _, m := range v.mounts {
		switch {
		case slices.Contains(strings.Split(m.Options, ","), "nosuid"):
		case m == at:
			shown = append(shown, own)
		case recursive && config.Under(m.Mountpoint, path):
			shown = append(shown, regionOf(m))
		}
	}
	return shown, nil
}

// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"fmt"
	"path/filepath"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/rootpath"
)

// jailRoot is the root of a view during its assembly.
type jailRoot struct {
	name   string // name of the jail, for messages
	path   string // path on the host, for messages
	image  bool   // whether the root is an image, in which nothing can be created
	fd     int
	sealed bool            // to be made read-only when the view is complete
	owned  map[uint64]bool // device numbers of the file systems that the view mounted
	placed []placed        // attached mounts in which targets are resolved from their descriptors, in order
}

// placed is a mount of the view that is attached.
type placed struct {
	path    string
	fd      int    // descriptor of the tree
	resolve uint64 // openat2 flags for paths in it
}

func (r *jailRoot) close() { unix.Close(r.fd) }

// addOwned permits the creation of targets in the file system of fd, which it identifies by its device number: a
// target's path does not tell on which mount it lies.
func (r *jailRoot) addOwned(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &mountError{Op: "fstat", Err: err}
	}
	r.owned[st.Dev] = true
	return nil
}

// openInView resolves path with this root as "/": no symlink, ".." or link of /proc leads out of it (openat2(2), Linux
// 5.6). A path in a mount of the view is resolved from that mount: the owner of the jail's root may rename or replace
// the directory on which it is mounted at any time.
func (r *jailRoot) openInView(path string, flags uint64) (int, error) {
	for i := len(r.placed) - 1; i >= 0; i-- { // a later mount covers an earlier one
		if rest, below := strings.CutPrefix(path, r.placed[i].path+"/"); below {
			return rootpath.Open(r.placed[i].fd, rest, flags, r.placed[i].resolve)
		}
	}
	return rootpath.OpenInRoot(r.fd, path, flags)
}

// openTarget opens a mount target. It creates a missing one only on a file system of the view itself: on shared storage
// all nodes would race to create it, and one would remove what another needs.
//
// The target of a file is the name itself, even if it is a symlink: the file to which that leads has other names, and
// programs that use those must see it. If /etc/localtime is a link to a zone, for example, a mount on that zone would
// change it for each program that names it in TZ. A directory cannot be mounted on a symlink, so a symlink to one is
// followed.
func (r *jailRoot) openTarget(path string, dir bool) (int, error) {
	flags := targetFlags(dir)
	fd, err := r.openInView(path, flags)
	if err != unix.ENOENT {
		return fd, r.resolveError(path, err)
	}
	parent, err := r.openParent(path)
	if err != nil {
		return -1, err
	}
	defer unix.Close(parent)
	base := filepath.Base(path)
	if dir {
		err = unix.Mkdirat(parent, base, 0o755)
	} else {
		err = unix.Mknodat(parent, base, unix.S_IFREG|0o644, 0)
	}
	if err != nil {
		return -1, &mountError{Op: "create mount target", Target: path, Err: err}
	}
	fd, err = r.openInView(path, flags)
	return fd, r.resolveError(path, err)
}

// targetFlags returns the flags for opening a mount target, a directory or a file.
func targetFlags(dir bool) uint64 {
	if dir {
		return unix.O_PATH
	}
	return unix.O_PATH | unix.O_NOFOLLOW
}

// makeSharedDir creates a directory to which all users may write.
func (r *jailRoot) makeSharedDir(path string) error {
	fd, err := r.openTarget(path, true)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// By the path below /proc, because fchmod(2) fails with EBADF for a path descriptor.
	if err := unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o777|unix.S_ISVTX); err != nil {
		return &mountError{Op: "chmod", Target: path, Err: err}
	}
	return nil
}

// openParent opens the directory of path, to create an entry in it. It refuses a directory on any file system but the
// view's own.
func (r *jailRoot) openParent(path string) (int, error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return -1, fmt.Errorf("mount target %q is not a clean absolute path below /", path)
	}
	fd, err := r.openTarget(filepath.Dir(path), true)
	if err == nil {
		var st unix.Stat_t
		if err = unix.Fstat(fd, &st); err == nil && r.owned[st.Dev] {
			return fd, nil
		}
		unix.Close(fd)
		err = r.missingError(path)
	}
	if _, ok := err.(*missingTargetError); ok {
		err = r.missingError(path) // name the target itself, not its parent
	}
	return -1, err
}

// missingTargetError is the error for a target that launches never create.
type missingTargetError struct {
	path, root, name string
	image            bool
}

func (r *jailRoot) missingError(path string) error {
	return &missingTargetError{path, r.path, r.name, r.image}
}

func (e *missingTargetError) Error() string {
	return fmt.Sprintf("mount target %s is missing in %s; %s", e.path, e.root, Remedy(e.name, e.image))
}

// Remedy returns what to do about a jail's missing mount targets.
func Remedy(jail string, image bool) string {
	if image {
		return "create it in the tree that the image is made of, and create the image again: gojail init --tree DIR " +
			jail
	}
	return "create it once with: gojail init " + jail
}

// resolveError explains an error of openat2(2) about a mount target. EXDEV comes from RESOLVE_BENEATH, which holds in
// data directories of users.
func (r *jailRoot) resolveError(path string, err error) error {
	switch err {
	case nil:
		return nil
	case unix.ELOOP:
		return fmt.Errorf("mount target %s in %s is a symlink that must not be followed", path, r.path)
	case unix.EXDEV:
		return fmt.Errorf(
			"mount target %s in %s is a symlink that leads out of its data directory; put a directory there", path,
			r.path)
	case unix.ENOTDIR:
		return fmt.Errorf("mount target %s in %s lies below a file", path, r.path)
	}
	return &mountError{Op: "openat2", Target: path, Err: err}
}

// placeTree attaches a tree at its destination, by descriptor: the target was checked, and its path may lead elsewhere
// by now.
func (r *jailRoot) placeTree(t tree) error {
	fd, err := r.openTarget(t.destination(), t.dir)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := r.checkFits(t, fd); err != nil {
		return err
	}
	if err := unix.MoveMount(t.fd, "", fd, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return &mountError{Op: "move_mount", Source: t.mount.Source, Target: t.destination(), Flags: t.mount.Options,
			Err: err}
	}
	switch {
	case t.data: // users write there: a symlink that leads out of it is refused, and never followed by root
		r.placed = append(r.placed, placed{t.destination(), t.fd, unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS})
	case t.owned || t.mount.Type == "proc" || t.mount.Type == "sysfs":
		r.placed = append(r.placed, placed{t.destination(), t.fd, rootpath.InRoot})
	}
	if t.owned {
		return r.addOwned(t.fd)
	}
	return nil
}

// checkFits refuses a target of the wrong kind, for which move_mount(2) fails without saying why, and the root itself,
// because a mount on it would hide the jail.
func (r *jailRoot) checkFits(t tree, target int) error {
	var st, root unix.Stat_t
	if err := unix.Fstat(target, &st); err != nil {
		return &mountError{Op: "fstat", Target: t.destination(), Err: err}
	}
	if err := unix.Fstat(r.fd, &root); err != nil {
		return &mountError{Op: "fstat", Target: "/", Err: err}
	}
	if st.Dev == root.Dev && st.Ino == root.Ino {
		return fmt.Errorf("mount target %s in %s is the root itself", t.destination(), r.path)
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if isDir != t.dir {
		kind := map[bool]string{true: "a directory", false: "a file"}
		return fmt.Errorf("mount target %s in %s is %s, but its source %s is %s",
			t.destination(), r.path, kind[isDir], t.mount.Source, kind[t.dir])
	}
	return nil
}

// makeDevice creates a device node on a file system of the view, never on the jail's storage, where users may own the
// directory (openParent).
func (r *jailRoot) makeDevice(d specs.LinuxDevice) error {
	kinds := map[string]uint32{"c": unix.S_IFCHR, "u": unix.S_IFCHR, "b": unix.S_IFBLK}
	kind, known := kinds[d.Type]
	if !known {
		return fmt.Errorf("device %s: type %q is not one of c, b", d.Path, d.Type)
	}
	mode := uint32(0o666)
	if d.FileMode != nil {
		mode = uint32(d.FileMode.Perm())
	}
	parent, err := r.openParent(d.Path)
	if err != nil {
		return fmt.Errorf("device %s: %w", d.Path, err)
	}
	defer unix.Close(parent)
	base := filepath.Base(d.Path)
	if err := unix.Mknodat(parent, base, kind|mode, int(unix.Mkdev(uint32(d.Major), uint32(d.Minor)))); err != nil {
		return &mountError{Op: "mknod", Target: d.Path, Err: err}
	}
	if d.UID == nil && d.GID == nil {
		return nil
	}
	uid, gid := -1, -1
	if d.UID != nil {
		uid = int(*d.UID)
	}
	if d.GID != nil {
		gid = int(*d.GID)
	}
	if err := unix.Fchownat(parent, base, uid, gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &mountError{Op: "chown", Target: d.Path, Err: err}
	}
	return nil
}

// makeLink creates a symlink on a file system of the view. It fails if the name exists.
func (r *jailRoot) makeLink(l plan.Link) error {
	parent, err := r.openParent(l.Path)
	if err != nil {
		return fmt.Errorf("link %s: %w", l.Path, err)
	}
	defer unix.Close(parent)
	if err := unix.Symlinkat(l.Target, parent, filepath.Base(l.Path)); err != nil {
		return &mountError{Op: "symlink", Source: l.Target, Target: l.Path, Err: err}
	}
	return nil
}

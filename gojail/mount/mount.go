// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/fscontext"
	"github.com/gojail/gojail/internal/rootpath"
)

// mountError is the error of a system call that failed while a view was assembled.
type mountError struct {
	Op     string   // the system call
	Source string   // source of the mount; may be ""
	Target string   // destination in the view; may be ""
	Flags  []string // mount options by name
	Detail string   // the kernel's message, or what to do; may be ""
	Err    error    // a unix.Errno
}

func (e *mountError) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Source != "" {
		b.WriteString(" " + e.Source)
	}
	if e.Target != "" && e.Target != e.Source {
		b.WriteString(" on " + e.Target)
	}
	if len(e.Flags) > 0 {
		b.WriteString(" (" + strings.Join(e.Flags, ",") + ")")
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Err == unix.ENOSYS {
		b.WriteString(": Linux 5.12 or later is required")
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	return b.String()
}

func (e *mountError) Unwrap() error { return e.Err }

// tree is a mount, or a tree of mounts, with its place in the view. It is detached until jailRoot.placeTree attaches
// it. fd stays valid then, so that later mount targets are resolved from it and not by a path.
type tree struct {
	fd     int
	mount  specs.Mount
	dir    bool // the root of the tree is a directory
	data   bool // data of users in which root resolves paths: a link that leads out of them is refused
	owned  bool // a new file system of this view, in which targets may be created
	sealed bool // to be made read-only when the view is complete
}

func (t tree) destination() string { return t.mount.Destination }

type treeList []tree

func (l treeList) close() {
	for _, t := range l {
		unix.Close(t.fd)
	}
}

// openTrees creates every mount as a detached tree, in the host's view, so that no earlier mount hides a source.
// Nothing is attached if one of them fails.
func openTrees(mounts []specs.Mount, jail openJail) (treeList, error) {
	var trees treeList
	for _, m := range mounts {
		var t tree
		var err error
		if config.IsBind(m) {
			t, err = newBind(m, jail)
		} else {
			t, err = newFilesystem(m)
		}
		if err != nil {
			trees.close()
			return nil, err
		}
		trees = append(trees, t)
	}
	return trees, nil
}

// openJail is the open root of a jail, with its path on the host. A source below that path is resolved in the open
// root: users who can write in the jail could otherwise choose, by a symlink, which files of the host are mounted.
type openJail struct {
	path string
	root int
}

// newBind clones the mount at m.Source. Options of an rbind apply to all mounts below it, too.
func newBind(m specs.Mount, jail openJail) (tree, error) {
	o, err := parseMountOptions(m.Options)
	if err == nil && len(o.data) > 0 {
		err = fmt.Errorf("%q is not an option of a bind mount", o.data[0])
	}
	if err != nil {
		return tree{}, fmt.Errorf("mount %s: %w", m.Destination, err)
	}
	if !filepath.IsAbs(m.Source) {
		return tree{}, fmt.Errorf("mount %s: source %q is not an absolute path", m.Destination, m.Source)
	}
	fd, err := cloneSource(m.Source, jail, o)
	if errors.Is(err, unix.ENOENT) {
		return tree{}, fmt.Errorf("mount source %s (for %s) does not exist on this node", m.Source, m.Destination)
	}
	if err != nil {
		return tree{}, &mountError{Op: "open_tree", Source: m.Source, Target: m.Destination, Flags: m.Options, Err: err}
	}
	t := tree{fd: fd, mount: m}
	if err := setAttributes(fd, o); err != nil {
		unix.Close(fd)
		return tree{}, &mountError{Op: "mount_setattr", Source: m.Source, Target: m.Destination, Flags: m.Options,
			Err: err}
	}
	t.dir, err = isDirectory(fd)
	return t, err
}

// cloneSource clones the mount at a source. It gives open_tree(2) the path itself, because a lookup that ends in O_PATH
// triggers no automount (open(2)).
func cloneSource(source string, jail openJail, o mountOptions) (int, error) {
	if !config.Under(source, jail.path) {
		return unix.OpenTree(unix.AT_FDCWD, source, o.openTreeFlags())
	}
	if source == jail.path {
		return unix.OpenTree(jail.root, "", o.openTreeFlags()|unix.AT_EMPTY_PATH)
	}
	fd, err := OpenSource(source, jail.path, jail.root)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	return unix.OpenTree(fd, "", o.openTreeFlags()|unix.AT_EMPTY_PATH)
}

// OpenSource opens a source as a path descriptor. A source below the path of the jail is resolved inside the
// jail's open root.
func OpenSource(source, jail string, root int) (int, error) {
	if !config.Under(source, jail) {
		return unix.Open(source, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	return rootpath.OpenBeneath(root, "."+strings.TrimPrefix(source, jail), rootpath.InRoot)
}

// setAttributes sets the options of a detached tree and makes it private, so that later mounts on it do not propagate
// to the place from which it was cloned.
func setAttributes(fd int, o mountOptions) error {
	flags := uint(unix.AT_EMPTY_PATH)
	if o.recursive {
		flags |= unix.AT_RECURSIVE
	}
	attr := unix.MountAttr{Attr_set: o.set, Attr_clr: o.clear, Propagation: unix.MS_PRIVATE}
	return unix.MountSetattr(fd, "", flags, &attr)
}

// isDirectory reports whether an open file is a directory.
func isDirectory(fd int) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, &mountError{Op: "fstat", Err: err}
	}
	return st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

// newFilesystem creates a new file system: proc, sysfs, tmpfs, devpts, mqueue or overlay. Other types must be mounted
// on the node, and are bound.
func newFilesystem(m specs.Mount) (tree, error) {
	switch m.Type {
	case "proc", "sysfs", "tmpfs", "devpts", "mqueue", "overlay":
	default:
		return tree{}, fmt.Errorf("mount %s: type %q is not one of bind, proc, sysfs, tmpfs, devpts, mqueue, overlay",
			m.Destination, m.Type)
	}
	o, err := parseMountOptions(m.Options)
	if err != nil {
		return tree{}, fmt.Errorf("mount %s: %w", m.Destination, err)
	}
	t := tree{mount: m, dir: true, owned: m.Type == "tmpfs"}
	if t.owned && o.set&unix.MOUNT_ATTR_RDONLY != 0 { // targets are created in it first
		t.sealed = true
		o.set &^= unix.MOUNT_ATTR_RDONLY
	}
	ctx, err := unix.Fsopen(m.Type, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return tree{}, &mountError{Op: "fsopen", Source: m.Type, Target: m.Destination, Err: err}
	}
	defer unix.Close(ctx)
	if err := configureContext(ctx, m, o); err != nil {
		return tree{}, err
	}
	t.fd, err = unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, int(o.set))
	if err != nil {
		return tree{}, &mountError{Op: "fsmount", Source: m.Type, Target: m.Destination, Flags: m.Options,
			Detail: fscontext.Message(ctx), Err: err}
	}
	return t, nil
}

// configureContext sets the source and the data options of a file system context and creates the superblock. The kernel
// explains a refused option in the context's message, which goes into the error.
func configureContext(ctx int, m specs.Mount, o mountOptions) error {
	data := splitLayers(o.data)
	fail := func(what string, err error) error {
		detail := fscontext.Message(ctx)
		if err == unix.EINVAL && !slices.Equal(data, o.data) {
			detail =
				fmt.Sprintf("lowerdir of more than %d bytes requires Linux 6.8 or later, and layers of no more than "+
					"that each: %s", fsconfigMax, detail)
		}
		return &mountError{Op: "fsconfig", Source: m.Type + " " + what, Target: m.Destination, Flags: m.Options,
			Detail: detail, Err: err}
	}
	if m.Source != "" {
		if err := unix.FsconfigSetString(ctx, "source", m.Source); err != nil {
			return fail("source="+m.Source, err)
		}
	}
	for _, option := range data {
		key, value, ok := strings.Cut(option, "=")
		var err error
		if ok {
			err = unix.FsconfigSetString(ctx, key, value)
		} else {
			err = unix.FsconfigSetFlag(ctx, key)
		}
		if err != nil {
			return fail(option, err)
		}
	}
	if err := unix.FsconfigCreate(ctx); err != nil {
		return fail("create", err)
	}
	return nil
}

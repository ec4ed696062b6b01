// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/refusal"
	"github.com/gojail/gojail/internal/rootpath"
)

// Credentials are a user's ids, as the kernel checks them.
type Credentials struct {
	UID, GID uint32
	Groups   []uint32 // supplementary groups
}

// Tree is a user's mount as a detached tree. The caller closes FD, which is close-on-exec, and attaches it to
// Destination without following symlinks: that path has none, and the site's rules permit it.
type Tree struct {
	FD          int
	Destination string
	Root        bool // replaces the jail's root
}

// OpenUserMounts opens the mounts that --jail-mount asks for. It opens each source and destination with
// the user's rights and then applies the site's rules to their real paths. root is a directory that shows
// the jail's root, such as /proc/PID/root of its zygote; state is the state directory. The process must
// be in the host's view.
//
// The trees, with all mounts below them, are nosuid, nodev and private. After an error none is open. It
// requires Linux 5.12.
func OpenUserMounts(c *config.Config, j *config.Jail, mounts []config.UserMount, who Credentials, root,
	state string) ([]Tree, error) {
	slurm := node.ReadSlurm(c)
	trusted := plan.TrustedPaths(c, state, slurm.Dirs, slurm.Files)
	var trees []Tree
	for _, m := range mounts {
		t, err := openUserMount(c, j, m, who, root, trusted)
		if err != nil {
			closeTrees(trees)
			return nil, fmt.Errorf("--jail-mount=%s: %w", m, err)
		}
		trees = append(trees, t)
	}
	return trees, nil
}

// closeTrees closes the descriptors of trees, with which the kernel unmounts detached ones.
func closeTrees(trees []Tree) {
	for _, t := range trees {
		unix.Close(t.FD)
	}
}

// openUserMount opens one mount: first, with the user's rights, the files that the user names; then, with root's
// rights, a clone of what was opened.
func openUserMount(c *config.Config, j *config.Jail, m config.UserMount, who Credentials, root string,
	trusted []string) (Tree, error) {
	source, target := -1, -1
	defer func() { unix.Close(source); unix.Close(target) }()
	err := doAsUser(who, root, func(rootFD int) (err error) {
		if source, err = openSource(m.Source, who); err != nil {
			return err
		}
		target, err = openDestination(rootFD, m.Destination, j.Name, who)
		return err
	})
	if err != nil {
		return Tree{}, err
	}
	t := Tree{FD: -1}
	// From here on root works with open files: the user may exchange the paths at any time, so the rules are applied to
	// the real paths of the descriptors.
	real, err := rootpath.OfDescriptor(source, m.Source)
	if err != nil {
		return t, err
	}
	if t.Destination, err = rootpath.OfDescriptor(target, m.Destination); err != nil {
		return t, err
	}
	if err := c.Permit(j, real, t.Destination, m.Readonly, trusted); err != nil {
		return t, refusal.Mark(err)
	}
	if err := checkSameKind(source, target, m); err != nil {
		return t, err
	}
	t.FD, err = cloneForUser(source, m.Readonly)
	return t, err
}

// openSource opens a source as the user, who must be able to read it.
func openSource(path string, who Credentials) (int, error) {
	// O_DIRECTORY first: with O_PATH alone, the lookup triggers no automount (open(2)).
	need := uint32(unix.R_OK | unix.X_OK)
	// Links of /proc are refused, because those of /proc/self lead to files that this process has opened as root.
	fd, err := rootpath.Open(unix.AT_FDCWD, path, unix.O_PATH|unix.O_DIRECTORY, unix.RESOLVE_NO_MAGICLINKS)
	if err == unix.ENOTDIR {
		need = unix.R_OK
		fd, err = rootpath.Open(unix.AT_FDCWD, path, unix.O_PATH, unix.RESOLVE_NO_MAGICLINKS)
	}
	if err != nil {
		return -1, explainUserError(path, who, err)
	}
	// O_PATH requires no permission for the file itself (open(2)): without this, a user could mount what root may read.
	if err := unix.Faccessat2(fd, "", need, unix.AT_EMPTY_PATH|unix.AT_EACCESS); err != nil {
		unix.Close(fd)
		return -1, explainUserError(path, who, err)
	}
	return fd, nil
}

// openDestination opens a destination as the user, so that errors reveal nothing about directories that the user may
// not enter.
func openDestination(root int, path, jail string, who Credentials) (int, error) {
	fd, err := rootpath.OpenBeneath(root, path, rootpath.InRoot)
	if err == unix.ENOENT {
		return -1, refusal.Errorf("%s does not exist in jail %s; choose an existing directory", path, jail)
	}
	if err != nil {
		return -1, explainUserError("destination "+path, who, err)
	}
	return fd, nil
}

// explainUserError returns an error about a path as the user wrote it. It says no more than the user could find out. An
// errno that another path would not have is a refusal; others, such as EIO and ESTALE, are faults of the storage.
func explainUserError(path string, who Credentials, err error) error {
	switch err {
	case unix.ENOENT:
		return refusal.Errorf("%s: no such directory or file on this node", path)
	case unix.EACCES, unix.EPERM:
		return refusal.Errorf("%s: permission denied for user %d", path, who.UID)
	case unix.ELOOP:
		return refusal.Errorf("%s: leads through a symlink that must not be followed, such as one of /proc", path)
	case unix.ENOTDIR, unix.ENAMETOOLONG, unix.EINVAL:
		return refusal.Errorf("%s: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// checkSameKind requires source and destination to be both directories or both regular files.
func checkSameKind(source, target int, m config.UserMount) error {
	var s, d unix.Stat_t
	if err := unix.Fstat(source, &s); err != nil {
		return fmt.Errorf("%s: %w", m.Source, err)
	}
	if err := unix.Fstat(target, &d); err != nil {
		return fmt.Errorf("%s: %w", m.Destination, err)
	}
	kind := s.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return refusal.Errorf("%s is neither a directory nor a regular file", m.Source)
	}
	if kind != d.Mode&unix.S_IFMT {
		return refusal.Errorf("%s and %s must both be directories, or both be files", m.Source, m.Destination)
	}
	return nil
}

// cloneForUser clones a source with all mounts below it, and makes all of them read-only if the user asks for that.
func cloneForUser(source int, readonly bool) (int, error) {
	fd, err := cloneNosuid(source, true)
	if err != nil || !readonly {
		return fd, err
	}
	if err := setAttributes(fd, mountOptions{recursive: true, set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		unix.Close(fd)
		return -1, &mountError{Op: "mount_setattr", Flags: []string{"ro"}, Err: err}
	}
	return fd, nil
}

// doAsUser runs f, with the open directory root, on a thread with only the user's rights: the kernel itself then
// decides what the user may open. Other threads keep their rights.
func doAsUser(who Credentials, root string, f func(rootFD int) error) error {
	rootFD, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open the jail's template (%s: %w); try again", root, err)
	}
	defer unix.Close(rootFD)
	return doOnThread(func() error {
		if err := becomeUser(who); err != nil {
			return err
		}
		return f(rootFD)
	})
}

// doOnThread runs f on a thread that ends with it, so that no other goroutine inherits the rights or the namespace that
// f sets. If the goroutine is scheduled on the main thread, it blocks that and starts another: the runtime would park
// the main thread instead of ending it.
func doOnThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			done <- f()
			return
		}
		err := doOnThread(f)
		runtime.UnlockOSThread()
		done <- err
	}()
	return <-done
}

// becomeUser gives this thread the user's ids. The raw system calls change one thread (credentials(7)); the functions
// of the C library would change all. The user id is last, because the others can be set by root only. Leaving uid 0
// drops all capabilities (capabilities(7)).
func becomeUser(who Credentials) error {
	var list unsafe.Pointer
	if len(who.Groups) > 0 {
		list = unsafe.Pointer(&who.Groups[0])
	}
	uid, gid := uintptr(who.UID), uintptr(who.GID)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(who.Groups)), uintptr(list), 0); errno != 0 {
		return fmt.Errorf("cannot set the groups of user %d: %w", who.UID, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); errno != 0 {
		return fmt.Errorf("cannot set group %d of user %d: %w", who.GID, who.UID, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); errno != 0 {
		return fmt.Errorf("cannot set the user id %d: %w", who.UID, errno)
	}
	return nil
}

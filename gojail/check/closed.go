// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
)

// asUser calls try with the file access of a user who owns nothing and is in no group: root may open what no job's user
// can. The kernel, and the server of the storage, decide. It takes the rights of one thread, which ends with the call
// (setfsuid(2), credentials(7)).
func asUser(try func() error) error {
	return onOtherThread(func() error {
		_, _, failed := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
		unix.SetfsgidRetGid(lastUserID)
		unix.SetfsuidRetUid(lastUserID)
		if now, _ := unix.SetfsuidRetUid(-1); failed != 0 || now != lastUserID {
			return nil // whoever is not root tries as the one who called
		}
		return try()
	})
}

// onOtherThread calls f on a thread that ends with the call, whatever rights and namespaces f gives it. That is never
// the main thread: other rights would remove its signal at the end of the parent (prctl(2)).
func onOtherThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // without UnlockOSThread: the thread ends with this goroutine
		if unix.Gettid() == unix.Getpid() {
			defer runtime.UnlockOSThread()
			done <- onOtherThread(f) // this one is locked
			return
		}
		done <- f()
	}()
	return <-done
}

// closed is a directory or file in a root whose mode keeps users from the path that leads through it.
type closed struct {
	name string // in the root, with links resolved
	path string // on the node

	toAll bool // it admits nobody but root
}

// findClosed returns what keeps a user from a path in a root, with the given rights of access(2). Storage may refuse
// for another reason, such as a user without a ticket (sec=krb5, nfs(5)), which says nothing about users who have one:
// then there is nothing.
func findClosed(root int, path string, rights uint32) (list []closed) {
	err := asUser(func() error {
		fd, err := rootpath.OpenBeneath(root, path, rootpath.InRoot)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Faccessat2(fd, "", rights, unix.AT_EMPTY_PATH|unix.AT_EACCESS)
	})
	if !errors.Is(err, unix.EACCES) {
		return nil
	}
	top, real := resolveInRoot(root, "/"), resolveInRoot(root, path)
	name := "/" + strings.TrimPrefix(strings.TrimPrefix(real, top), "/")
	names := listPrefixes(name)
	for _, prefix := range listPrefixes(path) { // a link may lie in a closed directory
		if prefix != path && !slices.Contains(names, prefix) {
			names = append(names, prefix)
		}
	}
	for _, one := range names {
		need := uint32(unix.X_OK)
		if one == name {
			need = rights
		}
		fd, err := rootpath.OpenBeneath(root, one, rootpath.InRoot)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&need != need {
			list = append(list, closed{one, filepath.Join(top, one), !admitsSome(fd, &st)})
		}
		unix.Close(fd)
	}
	return list
}

// admitNobody reports whether something in the list admits nobody but root.
func admitNobody(list []closed) bool {
	return slices.ContainsFunc(list, func(one closed) bool { return one.toAll })
}

// listPrefixes returns a clean absolute path and the directories above it, "/" first.
func listPrefixes(path string) (prefixes []string) {
	for ; path != "/"; path = filepath.Dir(path) {
		prefixes = append(prefixes, path)
	}
	prefixes = append(prefixes, "/")
	slices.Reverse(prefixes)
	return prefixes
}

// resolveInRoot returns the path of the node that a path of a root leads to. A link in the root, which may be a user's,
// leads elsewhere outside of it: chmod of ROOT/bin/sh would change a file of the node.
func resolveInRoot(root int, path string) string {
	fd, err := rootpath.OpenBeneath(root, path, rootpath.InRoot)
	if err != nil {
		return path
	}
	defer unix.Close(fd)
	if to, err := rootpath.PathOf(fd); err == nil {
		return to
	}
	return path
}

// describeModes returns the command that opens what is closed.
func describeModes(list []closed, rights string) string {
	var words []string
	for _, one := range list {
		if word := oneline.ShellWord(one.path); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return "chmod a+" + rights + " " + strings.Join(words, " ")
}

// joinNames returns the names in their root of what is closed.
func joinNames(list []closed) string {
	var names []string
	for _, one := range list {
		names = append(names, one.name)
	}
	return strings.Join(names, ", ")
}

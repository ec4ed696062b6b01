// SPDX-License-Identifier: Apache-2.0

// Package storage describes the file system on which a directory lies, without writing to it. Every function except
// ReadTable may wait for the file system's server for ever: callers have a process or a goroutine that they can give
// up.
package storage

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/procfs"
	"github.com/gojail/gojail/internal/rootpath"
)

// Mount is a mount of this process's namespace.
type Mount struct {
	ID           int // in mountinfo
	Source, Type string
	Point        string
	Options      []string // of the mount, then of the file system
}

// String returns the mount as named in messages: "srv:/export (nfs4)".
func (m *Mount) String() string { return m.Source + " (" + m.Type + ")" }

// Has reports whether the mount has an option, with whatever value.
func (m *Mount) Has(name string) bool {
	_, found := m.Value(name)
	return found
}

// Value returns the value of an option such as vers=4.2.
func (m *Mount) Value(name string) (value string, found bool) {
	for _, option := range m.Options {
		key, value, _ := strings.Cut(option, "=")
		if key == name {
			return value, true
		}
	}
	return "", false
}

// tellingOptions are the options, of any file system, that decide what jobs can do and how the storage fails.
var tellingOptions = []string{"ro", "nosuid", "nodev", "noexec", "hard", "soft", "softerr", "softreval", "vers",
	"proto", "nconnect", "sec",
	"noac", "actimeo", "acregmin", "acregmax", "acdirmin", "acdirmax", "nocto", "lookupcache", "nolock", "local_lock",
	"sync",
	"flock", "localflock", "noflock", "user_xattr", "default_permissions"}

// TellingOptions returns the options that decide what jobs can do and how the storage fails.
func (m *Mount) TellingOptions() (found []string) {
	for _, name := range tellingOptions {
		value, ok := m.Value(name)
		switch {
		case !ok, name == "local_lock" && value == "none", name == "sec" && value == "sys":
		case value != "":
			found = append(found, name+"="+value)
		default:
			found = append(found, name)
		}
	}
	return found
}

// Table is the mount table of this process.
type Table []*mountinfo.Info

// ReadTable reads the mount table, which never waits for a server.
func ReadTable() (Table, error) { return procfs.ReadMounts("/proc/self") }

func newMount(m *mountinfo.Info) *Mount {
	options := append(strings.Split(m.Options, ","), strings.Split(m.VFSOptions, ",")...)
	slices.Sort(options)
	return &Mount{ID: m.ID, Source: m.Source, Type: m.FSType, Point: m.Mountpoint, Options: slices.Compact(options)}
}

// Above returns the mount that shows a path without symbolic links, or nil.
func (t Table) Above(path string) *Mount {
	var found *mountinfo.Info
	for _, m := range t { // the last mount on a path is the visible one
		if isBelow(path, m.Mountpoint) && (found == nil || len(m.Mountpoint) >= len(found.Mountpoint)) {
			found = m
		}
	}
	if found == nil {
		return nil
	}
	return newMount(found)
}

func isBelow(path, dir string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}

// MountOf returns the mount on which an open file lies, or nil if this process's table does not list it.
func MountOf(fd int) (*Mount, error) {
	id, err := MountID(fd)
	if err != nil {
		return nil, err
	}
	all, err := ReadTable()
	for _, m := range all {
		if m.ID == id {
			return newMount(m), nil
		}
	}
	return nil, err
}

// MountID returns the number in mountinfo of the mount on which an open file lies (Linux 5.8).
func MountID(fd int) (int, error) {
	var st unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &st); err != nil {
		return 0, err
	}
	if st.Mask&unix.STATX_MNT_ID == 0 {
		return 0, rootpath.OldKernel{Errno: unix.ENOSYS}
	}
	return int(st.Mnt_id), nil
}

// Walk is a walk along a path. It remembers its position, to name the storage that does not answer.
type Walk struct {
	table Table
	mutex sync.Mutex
	at    string
}

// NewWalk returns a walk that has not begun.
func NewWalk(table Table) *Walk { return &Walk{table: table} }

// MoveTo records that the walk is at a path, which has no symbolic links.
func (w *Walk) MoveTo(path string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.at = path
}

// Follow looks up each component of a path, as the kernel does.
func (w *Walk) Follow(path string) {
	_ = rootpath.Follow(path, func(dir, name string) (string, error) {
		next := filepath.Join(dir, name)
		w.MoveTo(next)
		target, _ := os.Readlink(next) // "" if it is no link
		return target, nil
	})
}

// Mount returns the mount on which the walk is, waits, or has ended; nil if the table does not list it.
func (w *Walk) Mount() *Mount {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.table.Above(w.at)
}

// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/procfs"
	"github.com/gojail/gojail/internal/rootpath"
	"github.com/gojail/gojail/internal/storage"
)

// region is a directory tree as the kernel identifies it, by its file system and its path in there
// (proc_pid_mountinfo(5)): several mounts may show one region at different paths.
type region struct {
	major, minor int
	path         string
}

// regionOf returns the region that a mount shows.
func regionOf(m *mountinfo.Info) region { return region{m.Major, m.Minor, m.Root} }

// contains reports whether other lies in r.
func (r region) contains(other region) bool {
	return r.major == other.major && r.minor == other.minor && config.Under(other.path, r.path)
}

// mountView is the mount table of a process, with its root directory.
type mountView struct {
	mounts []*mountinfo.Info
	root   int // O_PATH
}

// ReadMountView reads the mount table of a process by its name in /proc.
func ReadMountView(process string) (*mountView, error) {
	fail := func(err error) (*mountView, error) {
		return nil, fmt.Errorf("cannot read the mount table of process %s: %w", process, oneline.Cause(err))
	}
	mounts, root, err := procfs.OpenMounts("/proc/" + process)
	if err != nil {
		return fail(err)
	}
	return &mountView{mounts, root}, nil
}

func (v *mountView) Close() { unix.Close(v.root) }

// mountOf returns the mount that an open file lies on, or nil if the table does not list it.
func (v *mountView) mountOf(fd int) (*mountinfo.Info, error) {
	id, err := storage.MountID(fd)
	if err != nil {
		return nil, err
	}
	for _, m := range v.mounts {
		if m.ID == id {
			return m, nil
		}
	}
	return nil, nil
}

// findRoot returns the mount of the root, or an error if the table does not list it.
func (v *mountView) findRoot() (*mountinfo.Info, error) {
	root, err := v.mountOf(v.root)
	if err == nil && root == nil {
		err = unix.ENOENT
	}
	return root, err
}

// RegionOf returns the region of an open directory.
func (v *mountView) RegionOf(fd int) (region, error) {
	m, err := v.mountOf(fd)
	if err != nil {
		return region{}, err
	}
	path, err := rootpath.PathOf(fd)
	if err != nil {
		return region{}, err
	}
	// The path of a removed directory, or of one outside this process's root, is none below the mount.
	if m == nil || !config.Under(path, m.Mountpoint) {
		return region{}, fmt.Errorf("%s is not in the mount table", path)
	}
	r := regionOf(m)
	r.path = filepath.Join(r.path, relativeTo(path, m.Mountpoint))
	return r, nil
}

// relativeTo returns path without its prefix dir.
func relativeTo(path, dir string) string {
	return strings.TrimPrefix(path, strings.TrimSuffix(dir, "/"))
}

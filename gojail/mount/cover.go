// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rootpath"
)

// certifiers are the default sockets of munged and of slurmd (sackd(8)). A jail may show them even if gojail.toml names
// another socket.
var certifiers = []string{"/run/munge/munge.socket.2", "/run/slurm/sack.socket"}

// openCovers opens the masks that hide munge's socket in a sandbox of --jail-root=range, if mounts of the jail show it:
// munge certifies the uid that a process has on the node, and an id of the range could be an account's. A mask covers
// the socket's directory, because munged creates the socket anew when it starts; if a mount shows the socket alone, the
// mask covers that mount.
func (v *mountView) openCovers(c *config.Config, j *config.Jail) (covers []Tree, err error) {
	defer func() {
		if err != nil {
			closeTrees(covers)
			covers = nil
		}
	}()
	var places []string
	for _, socket := range append([]string{c.Slurm.Munge}, certifiers...) {
		dir, found, err := findDirectoryRegion(filepath.Dir(socket))
		if err != nil {
			return nil, err
		}
		if found {
			places = append(places, v.findPlaces(dir, filepath.Base(socket))...)
		}
	}
	slices.Sort(places) // directories before what is in them, so that one mask covers both
	for i, path := range places {
		if slices.ContainsFunc(places[:i], func(above string) bool { return config.Under(path, above) }) {
			continue
		}
		at, err := rootpath.OpenBeneath(v.root, path, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_SYMLINKS)
		if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP {
			continue // another mount covers it
		}
		if err != nil {
			return covers, fmt.Errorf("cannot hide %s of the jail: %w", path, err)
		}
		dir, err := isDirectory(at)
		unix.Close(at)
		if err != nil {
			return covers, err
		}
		fd, err := openMask(path, dir, openJail{j.Root, v.root})
		if err != nil {
			return covers, err
		}
		covers = append(covers, Tree{FD: fd, Destination: path})
	}
	return covers, nil
}

// findPlaces returns the paths of a view at which mounts show a directory, or only the file of that name in it. It
// compares regions and not paths, because the jail may show the socket's file system anywhere.
func (v *mountView) findPlaces(dir region, name string) []string {
	file := dir
	file.path = filepath.Join(dir.path, name)
	var places []string
	for _, m := range v.mounts {
		switch shown := regionOf(m); {
		case shown.contains(dir):
			places = append(places, filepath.Join(m.Mountpoint, relativeTo(dir.path, shown.path)))
		case shown == file:
			places = append(places, m.Mountpoint)
		}
	}
	return places
}

// findDirectoryRegion returns the region of a directory of this node, if it exists.
func findDirectoryRegion(path string) (r region, found bool, err error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT || err == unix.ENOTDIR {
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("cannot open %s: %w", path, oneline.Cause(err))
	}
	defer unix.Close(fd)
	view, err := ReadMountView("self")
	if err != nil {
		return r, false, err
	}
	defer view.Close()
	r, err = view.RegionOf(fd)
	return r, err == nil, err
}

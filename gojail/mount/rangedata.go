// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"cmp"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/rootpath"
)

// openOther clones a mount of the site outside the data directories, and maps it as those are mapped. A process with an
// id of the range can then neither connect to a daemon of the node there nor leave files that belong to that id. A
// mount that cannot map ids, such as NFS, is cloned unmapped; one with device nodes is not cloned, and the template's
// mount stays.
func (v *mountView) openOther(p place, data int) ([]Tree, error) {
	m, err := v.mountOf(p.fd)
	if err != nil || m == nil {
		return nil, err
	}
	for _, m := range append(v.mountsBelow(p.path), m) {
		// CloneMapped makes its clones nodev, so that no device node in them could be opened.
		if !slices.Contains(strings.Split(m.Options, ","), "nodev") {
			return nil, nil
		}
	}
	return v.openData(p, data, false)
}

// openData clones a directory with all mounts in it: at once, or one by one if some of them cannot map ids, because
// mount_setattr(2) changes all mounts of a tree or none. With strict, it fails for a mount that must be mapped and
// cannot.
func (v *mountView) openData(p place, data int, strict bool) ([]Tree, error) {
	if fd, err := CloneMapped(p.fd, true, data); err == nil {
		return []Tree{{FD: fd, Destination: p.path}}, nil
	}
	fd, err := v.openDataMount(p, data, strict)
	if err != nil {
		return nil, err
	}
	trees := []Tree{{FD: fd, Destination: p.path}}
	for _, m := range v.mountsBelow(p.path) {
		at, err := rootpath.OpenBeneath(v.root, m.Mountpoint, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_SYMLINKS)
		if err != nil {
			continue // another mount covers it
		}
		fd, err := v.openDataMount(place{at, m.Mountpoint}, data, strict)
		unix.Close(at)
		if err != nil {
			return trees, err
		}
		trees = append(trees, Tree{FD: fd, Destination: m.Mountpoint})
	}
	return trees, nil
}

// mountsBelow returns the mounts below a path, parents first, so that the caller can attach them in this order.
func (v *mountView) mountsBelow(path string) []*mountinfo.Info {
	var list []*mountinfo.Info
	for _, m := range v.mounts {
		if m.Mountpoint != path && config.Under(m.Mountpoint, path) {
			list = append(list, m)
		}
	}
	// Those that cover each other stand side by side: one place is attached once.
	slices.SortStableFunc(list, func(a, b *mountinfo.Info) int {
		return cmp.Or(len(a.Mountpoint)-len(b.Mountpoint), strings.Compare(a.Mountpoint, b.Mountpoint))
	})
	return slices.CompactFunc(list, func(a, b *mountinfo.Info) bool { return a.Mountpoint == b.Mountpoint })
}

// openDataMount clones one mount. If its ids cannot be mapped, a read-only mount, and one without files of users
// (tmpfs, overlay, autofs), stays unmapped; without strict, any mount does. Where users have files, an unmapped mount
// would let root of the jail create files that belong to ids of its range, with the set-user-ID bit and past quotas.
func (v *mountView) openDataMount(p place, data int, strict bool) (int, error) {
	fd, mapErr := CloneMapped(p.fd, false, data)
	if mapErr == nil {
		return fd, nil
	}
	m, err := v.mountOf(p.fd)
	if err != nil {
		return -1, err
	}
	if !strict || m != nil && (slices.Contains(strings.Split(m.Options, ","), "ro") ||
		slices.Contains([]string{"tmpfs", "overlay", "autofs"}, m.FSType)) {
		return cloneNosuid(p.fd, false)
	}
	return -1, explainMapError(p.path+" of the jail", mapErr)
}

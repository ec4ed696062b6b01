// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
)

// checkRange returns nil if a launch with --jail-root=range would succeed in a jail, or else the error and
// its remedy. It makes the same mounts as a launch, detached; for an image, of the open root itself.
func (c *checker) checkRange(j *config.Jail, root int) (remedy string, err error) {
	if node.HasImage(j) { // no set-user-ID file can be created in it
		return `remove "range" from jail_root, or use Linux 6.2 or later (erofs: 5.19)`, c.checkMaps(j, root)
	}
	if err := c.checkMaps(j, root); err != nil {
		return `remove "range" from jail_root, or use ext4, xfs or btrfs there`, err
	}
	view, err := mount.ReadMountView("self")
	if err != nil {
		return "", err
	}
	defer view.Close()
	own, err := view.RegionOf(root)
	if err == nil {
		err = mount.RefuseSuid(c.config, own)
	}
	if suid := (*mount.SuidError)(nil); errors.As(err, &suid) {
		return suid.Remedy(), err
	}
	return "", err
}

// checkMaps makes id-mapped mounts of a jail's root, and of the mounts in its data directories.
func (c *checker) checkMaps(j *config.Jail, root int) error {
	namespace, err := c.ids.open()
	if err != nil {
		return err
	}
	try := func(at int, path string) error {
		fd, err := mount.CloneMapped(at, false, int(namespace.Fd()))
		if err != nil {
			return fmt.Errorf("--jail-root=range: the file system of %s cannot map ids (%w)", path, err)
		}
		return unix.Close(fd)
	}
	if node.HasImage(j) {
		err = mount.MapIDs(root, int(namespace.Fd()), "jail root "+j.Root)
	} else {
		err = try(root, j.Root)
	}
	if err != nil {
		return err
	}
	for _, m := range plan.ConfiguredMounts(j) {
		if m.Type != "bind" || slices.Contains(m.Options, "ro") || !isData(j, m.Destination) {
			continue
		}
		if err := checkMapOf(j, root, m, try); err != nil {
			return err
		}
	}
	return nil
}

func checkMapOf(j *config.Jail, root int, m specs.Mount, try func(at int, path string) error) error {
	at, err := mount.OpenSource(m.Source, j.Root, root)
	if err != nil {
		return nil // checkSources reports it
	}
	defer unix.Close(at)
	return try(at, m.Source)
}

// isData reports whether a path is a data directory of a jail or lies in one.
func isData(j *config.Jail, path string) bool {
	if j.Data == nil {
		return plan.OwnData(j, config.FirstName(path))
	}
	return slices.ContainsFunc(j.Data, func(dir string) bool { return config.Under(path, dir) })
}

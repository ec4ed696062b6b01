// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"fmt"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/trusted"
)

// IDRange is what a user may be in a user namespace, from uid and gid 0 of it on
// (subuid(5), subgid(5)).
type IDRange struct {
	UID, GID uint32 // first of the range on the node
	Count    uint32 // of both
}

// rangeCount is as many as packages need; more are not used.
const rangeCount = 1 << 16

// SubIDs reads a user's range of /etc/subuid and /etc/subgid.
func SubIDs(uid uint32) (IDRange, error) {
	name := strconv.FormatUint(uint64(uid), 10)
	names := []string{name}
	if u, err := user.LookupId(name); err == nil {
		names = append(names, u.Username)
	}
	var r IDRange
	var counts [2]uint32
	for i, path := range []string{"/etc/subuid", "/etc/subgid"} {
		text, _, err := trusted.ReadFile(path, "the file of subordinate ids")
		if err != nil {
			return r, fmt.Errorf("--jail-root=range: %w", err)
		}
		first, count := subRange(string(text), names)
		if count == 0 {
			return r, fmt.Errorf("--jail-root=range: %s has no range of at least %d ids for %s; ask your administrator for a line such as %s:100000:65536",
				path, rangeCount, names[len(names)-1], names[len(names)-1])
		}
		counts[i] = count
		if i == 0 {
			r.UID = first
		} else {
			r.GID = first
		}
	}
	r.Count = min(counts[0], counts[1], rangeCount)
	return r, nil
}

// subRange is the first range of at least rangeCount ids: NAME:FIRST:COUNT. It is
// never one with ids of the node's own users in it.
func subRange(text string, names []string) (first, count uint32) {
	const ownUsers = 1 << 16
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) != 3 || !slices.Contains(names, fields[0]) {
			continue
		}
		first, err := number(fields[1])
		count, also := number(fields[2])
		if err == nil && also == nil && first >= ownUsers && count >= rangeCount && uint64(first)+uint64(count) < 1<<32 {
			return first, count
		}
	}
	return 0, 0
}

// OpenRange opens the jail's root with the ids of the user namespace ids, and the
// jail's data with those of data, as detached trees; the first is the root.
//
// It needs Linux 5.12 and file systems that can map ids (mount_setattr(2), "ID-mapped
// mounts": ext4, xfs, btrfs and others; nfs and lustre cannot).
func (c *Config) OpenRange(j *Jail, facts *HostFacts, ids, data int) (trees []Tree, err error) {
	defer func() {
		if err != nil {
			for _, t := range trees {
				unix.Close(t.FD)
			}
		}
	}()
	if err := refuseSuid(j.Root); err != nil {
		return nil, err
	}
	dirs, err := dataDirs(c, j, facts)
	if err != nil {
		return nil, err
	}
	options := append([]string{"rbind"}, j.Options...)
	if j.Readonly {
		options = append(options, "ro")
	}
	root := specs.Mount{Destination: "/", Type: "bind", Source: j.Root, Options: options}
	for i, m := range append([]specs.Mount{root}, dataMounts(c, j, dirs)...) {
		if m.Type != "bind" {
			continue // as the template has it
		}
		t, err := newBind(m, j.Root)
		if err != nil {
			return trees, err
		}
		trees = append(trees, Tree{FD: t.fd, Destination: m.Destination, Root: i == 0})
		namespace := data
		if i == 0 {
			namespace = ids
		}
		if err := MapIDs(t.fd, namespace, m.Source); err != nil && !slices.Contains(m.Options, "ro") {
			return trees, err
		}
	}
	return trees, nil
}

// MapIDs maps the ids of a detached tree by a user namespace.
func MapIDs(tree, namespace int, source string) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(namespace)}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("--jail-root=range: the file system of %s, or of a mount below it, cannot map ids (%w); "+
			"use --jail-root=self, or ask your administrator for ext4, xfs or btrfs there", source, err)
	}
	return nil
}

// refuseSuid: root in the jail can leave set-user-ID files of the node's root in
// the jail's storage. Nobody may be able to run them on the node.
func refuseSuid(root string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(root, &st); err != nil {
		return fmt.Errorf("jail root %s cannot be looked at: %w", root, err)
	}
	if st.Flags&unix.ST_NOSUID != 0 {
		return nil
	}
	for dir := root; ; dir = filepath.Dir(dir) {
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			return fmt.Errorf("%s cannot be looked at: %w", dir, err)
		}
		if dir != root && st.Uid == 0 && st.Mode&0o011 == 0 {
			return nil // nobody gets past it
		}
		if dir == "/" {
			break
		}
	}
	return fmt.Errorf("--jail-root=range: a set-user-ID file that is made in the jail could be run on the node; "+
		"ask your administrator to mount %s nosuid there, or to close a directory above it: chmod 700 %s", root, filepath.Dir(root))
}

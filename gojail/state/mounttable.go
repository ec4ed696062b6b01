// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/procfs"
	"github.com/gojail/gojail/internal/rootpath"
)

// mountTable is the kernel's table of the mounts of a sandbox.
type mountTable struct {
	mounts []*mountinfo.Info
	root   int // descriptor of the sandbox's root, O_PATH
}

// readMountTable reads the mount table of a sandbox's holder.
func readMountTable(r Record) (*mountTable, error) {
	fail := func(err error) (*mountTable, error) {
		return nil, fmt.Errorf("sandbox %s: cannot read the mounts of its holder: %w", r.Name, oneline.Cause(err))
	}
	mounts, root, err := procfs.OpenMounts(fmt.Sprintf("/proc/%d", r.PID))
	if err != nil {
		return fail(err)
	}
	if start, err := procfs.StartTime(r.PID); err != nil || start != r.Start {
		unix.Close(root)
		return fail(unix.ESRCH) // the pid belongs to another process by now
	}
	return &mountTable{mounts, root}, nil
}

func (t *mountTable) close() { unix.Close(t.root) }

// mountsAt returns all mounts on a path, which cover each other.
func (t *mountTable) mountsAt(path string) []*mountinfo.Info {
	var list []*mountinfo.Info
	for _, m := range t.mounts {
		if m.Mountpoint == path {
			list = append(list, m)
		}
	}
	return list
}

// topAt returns the visible mount on a path, or nil: the one that no other mount there covers.
func (t *mountTable) topAt(path string) *mountinfo.Info {
	list := t.mountsAt(path)
	for _, m := range list {
		if !slices.ContainsFunc(list, func(other *mountinfo.Info) bool { return other.Parent == m.ID }) {
			return m
		}
	}
	return nil
}

// resolve returns a path with the jail's symlinks followed, or the path itself if it is hidden.
func (t *mountTable) resolve(path string) string {
	fd, err := rootpath.OpenBeneath(t.root, path, rootpath.InRoot)
	if err != nil {
		return path
	}
	defer unix.Close(fd)
	if real, err := rootpath.OfDescriptor(fd, path); err == nil {
		return real
	}
	return path
}

// keepMade returns the mounts that the sandbox has, with their real destinations and flags. below are other planned
// mounts, which explain further mounts on the same path.
func (t *mountTable) keepMade(mounts, below []specs.Mount) []specs.Mount {
	var made []specs.Mount
	for i := range mounts {
		m := &mounts[i]
		m.Destination = t.resolve(m.Destination)
		before := 0
		for _, other := range slices.Concat(below, mounts[:i]) {
			if other.Destination == m.Destination {
				before++
			}
		}
		list := t.mountsAt(m.Destination)
		if len(list) <= before {
			continue
		}
		if len(list) == before+1 { // no later mount covers it
			setFlags(m, t.topAt(m.Destination))
		}
		made = append(made, *m)
	}
	return made
}

// cgroupMounts returns the mounts of the job's own cgroups (spank/plugin/cgroups.h).
func (t *mountTable) cgroupMounts() []specs.Mount {
	var mounts []specs.Mount
	for _, info := range t.mounts {
		if top := t.topAt(plan.CgroupRoot); top != nil && top.FSType == "tmpfs" && info.Parent == top.ID &&
			config.Under(info.Mountpoint, plan.CgroupRoot) {
			m := plan.Bind(info.Mountpoint, "bind")
			setFlags(&m, info)
			mounts = append(mounts, m)
		}
	}
	return mounts
}

// setFlags replaces the flags among the options by those of the mount, which has inherited some from the mount of which
// it is a clone.
func setFlags(m *specs.Mount, info *mountinfo.Info) {
	flags := []string{"ro", "nosuid", "nodev", "noexec"}
	opposite := []string{"rw", "suid", "dev", "exec"}
	m.Options = slices.DeleteFunc(slices.Clone(m.Options), func(o string) bool {
		return slices.Contains(flags, o) || slices.Contains(opposite, o)
	})
	have := strings.Split(info.Options, ",")
	for _, flag := range flags {
		if slices.Contains(have, flag) {
			m.Options = append(m.Options, flag)
		}
	}
}

// sizeOptions returns the size of a tmpfs as an option, if the mount has one.
func sizeOptions(info *mountinfo.Info) []string {
	for option := range strings.SplitSeq(info.VFSOptions, ",") {
		if strings.HasPrefix(option, "size=") {
			return []string{option}
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"fmt"
	"os"
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

// mountTable is what the kernel says about the mounts of a sandbox.
type mountTable struct {
	mounts []*mountinfo.Info
	root   int // of the sandbox, O_PATH
}

// readMountTable reads /proc/PID/mountinfo (proc(5)) of a sandbox's holder.
func readMountTable(r Record) (*mountTable, error) {
	fail := func(err error) (*mountTable, error) {
		return nil, fmt.Errorf("sandbox %s: its holder cannot be looked at: %w", r.Name, oneline.Cause(err))
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", r.PID))
	if err != nil {
		return fail(err)
	}
	mounts, err := mountinfo.GetMountsFromReader(bytes.NewReader(text), nil)
	if err != nil {
		return fail(err)
	}
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", r.PID), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	if start, err := procfs.StartTime(r.PID); err != nil || start != r.Start {
		unix.Close(root)
		return fail(unix.ESRCH) // the pid is another process's by now
	}
	return &mountTable{mounts, root}, nil
}

func (t *mountTable) close() { unix.Close(t.root) }

// mountsAt lists the mounts on one another at a path.
func (t *mountTable) mountsAt(path string) []*mountinfo.Info {
	var list []*mountinfo.Info
	for _, m := range t.mounts {
		if m.Mountpoint == path {
			list = append(list, m)
		}
	}
	return list
}

// topAt is the mount at a path that is seen, or nil: no other one there lies on it.
func (t *mountTable) topAt(path string) *mountinfo.Info {
	list := t.mountsAt(path)
	for _, m := range list {
		if !slices.ContainsFunc(list, func(other *mountinfo.Info) bool { return other.Parent == m.ID }) {
			return m
		}
	}
	return nil
}

// resolve follows the jail's symlinks; a path that is hidden stays as it is.
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

// keepMade gives mounts the destination and the flags that they have, and drops
// those that were not made: all mounts at the place are accounted for by below.
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
		if len(list) == before+1 { // the last one there: the top
			setFlags(m, t.topAt(m.Destination))
		}
		made = append(made, *m)
	}
	return made
}

// cgroupMounts are those that the job's steps were shown as their own (spank/plugin/cgroups.h).
func (t *mountTable) cgroupMounts() []specs.Mount {
	var mounts []specs.Mount
	for _, info := range t.mounts {
		if top := t.topAt(plan.CgroupRoot); top != nil && top.FSType == "tmpfs" && info.Parent == top.ID && config.Under(info.Mountpoint, plan.CgroupRoot) {
			m := plan.Bind(info.Mountpoint, "bind")
			setFlags(&m, info)
			mounts = append(mounts, m)
		}
	}
	return mounts
}

// setFlags replaces the options that are flags of a mount by those it has: some
// are inherited from where it was cloned.
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

// sizeOptions is the size of a tmpfs as an option, where it has one of its own.
func sizeOptions(info *mountinfo.Info) []string {
	for option := range strings.SplitSeq(info.VFSOptions, ",") {
		if strings.HasPrefix(option, "size=") {
			return []string{option}
		}
	}
	return nil
}

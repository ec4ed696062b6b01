// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// mountOptions are the options of one mount in the kernel's terms.
type mountOptions struct {
	set, clear uint64   // MOUNT_ATTR_*
	recursive  bool     // clone all mounts below, too, and set their options
	data       []string // options of the file system itself: size=1G, lowerdir=...
}

// mountAttributes are the options that mount_setattr(2) supports. A cleared bit undoes an option of a bind mount's
// source. The times of access are one field of several bits: mount_setattr(2) requires that it be cleared to set a
// value.
var mountAttributes = map[string]struct{ set, clear uint64 }{
	"ro":          {set: unix.MOUNT_ATTR_RDONLY},
	"rw":          {clear: unix.MOUNT_ATTR_RDONLY},
	"nosuid":      {set: unix.MOUNT_ATTR_NOSUID},
	"suid":        {clear: unix.MOUNT_ATTR_NOSUID},
	"nodev":       {set: unix.MOUNT_ATTR_NODEV},
	"dev":         {clear: unix.MOUNT_ATTR_NODEV},
	"noexec":      {set: unix.MOUNT_ATTR_NOEXEC},
	"exec":        {clear: unix.MOUNT_ATTR_NOEXEC},
	"nodiratime":  {set: unix.MOUNT_ATTR_NODIRATIME},
	"diratime":    {clear: unix.MOUNT_ATTR_NODIRATIME},
	"nosymfollow": {set: unix.MOUNT_ATTR_NOSYMFOLLOW},
	"symfollow":   {clear: unix.MOUNT_ATTR_NOSYMFOLLOW},
	"noatime":     {set: unix.MOUNT_ATTR_NOATIME, clear: unix.MOUNT_ATTR__ATIME},
	"relatime":    {set: unix.MOUNT_ATTR_RELATIME, clear: unix.MOUNT_ATTR__ATIME},
	"strictatime": {set: unix.MOUNT_ATTR_STRICTATIME, clear: unix.MOUNT_ATTR__ATIME},
}

// parseMountOptions sorts options; the last of contradicting ones takes precedence, as with mount(8). It refuses shared
// propagation: mounts and unmounts of a job would reach the node.
func parseMountOptions(options []string) (mountOptions, error) {
	var o mountOptions
	for _, name := range options {
		a, known := mountAttributes[name]
		switch {
		case known:
			o.set = o.set&^(a.clear|a.set) | a.set
			o.clear = o.clear&^a.set | a.clear
		case name == "rbind":
			o.recursive = true
		case name == "bind", name == "private", name == "rprivate", name == "defaults": // true of each mount
		case name == "shared", name == "rshared", name == "slave", name == "rslave", name == "unbindable",
			name == "runbindable":
			return o, fmt.Errorf("option %q is not supported: mounts of a jail are always private", name)
		case name == "":
			return o, fmt.Errorf("empty option")
		default:
			o.data = append(o.data, name)
		}
	}
	return o, nil
}

// openTreeFlags returns the flags with which open_tree(2) makes a detached clone of a source.
func (o mountOptions) openTreeFlags() uint {
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
	if o.recursive {
		flags |= unix.AT_RECURSIVE
	}
	return flags
}

// fsconfigMax is the maximum length of a value of fsconfig(2), in bytes.
const fsconfigMax = 255

// splitLayers splits a list of overlay layers that is too long for one value into single layers, which Linux 6.8 and
// later accept as lowerdir+.
func splitLayers(data []string) []string {
	var out []string
	for _, option := range data {
		layers, ok := strings.CutPrefix(option, "lowerdir=")
		if !ok || len(layers) <= fsconfigMax {
			out = append(out, option)
			continue
		}
		for _, layer := range strings.Split(layers, ":") {
			out = append(out, "lowerdir+="+layer)
		}
	}
	return out
}

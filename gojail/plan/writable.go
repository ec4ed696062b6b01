// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/gojail/config"
)

// OverlayOptions are the options of an overlay of the root. Each is the careful choice, whatever the kernel's default
// is (overlayfs.rst of Linux). Another version may replace the root below, so nothing in the upper layer may refer to
// it (index, metacopy), and a directory of the root is renamed by copying (redirect_dir).
var OverlayOptions = []string{"index=off", "metacopy=off", "redirect_dir=nofollow"}

// planWritable plans the changes to the root that each job has of its own. The kernel accesses the layers with the
// rights of the process that mounted the overlay, so users never reach them.
func planWritable(j *config.Jail) []OwnMount {
	if j.Writable == "" {
		return nil
	}
	upper := Bind("/", "bind", "nosuid", "nodev")
	if j.Writable == config.WritableTmpfs {
		upper = Tmpfs("/", "mode=700", "nosuid", "nodev")
		if j.WriteSize > 0 {
			upper.Options = append(upper.Options, fmt.Sprintf("size=%d", j.WriteSize))
		}
	}
	return []OwnMount{{How: mountUpper, Mount: upper}, {How: mountRoot, Mount: RootOverlay(j)}}
}

// RootOverlay returns the mount that is the root of a job in a writable jail.
func RootOverlay(j *config.Jail) specs.Mount {
	options := slices.Clone(OverlayOptions)
	for _, flag := range []string{"nosuid", "nodev", "noexec"} {
		if flag == "nodev" || slices.Contains(j.Options, flag) {
			options = append(options, flag)
		}
	}
	return specs.Mount{Destination: "/", Type: "overlay", Source: "overlay", Options: options}
}

// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"fmt"
	"path/filepath"
	"regexp"
)

// transients are mount points that come and go on a healthy node, and which nhc-genconf takes into its nhc.conf.
var transients = []struct {
	paths *regexp.Regexp
	with  string
}{
	{regexp.MustCompile(`^(?:/var)?/run/user/[0-9]+(?:/|$)`), "sessions of its user"},
	{regexp.MustCompile(`^(?:/var)?/run/credentials(?:/|$)`), "a service"},
	{regexp.MustCompile(`^(?:/var)?/run/netns(?:/|$)`), "a network namespace"},
	{regexp.MustCompile(
		`^(?:/var)?/run/(?:docker|containerd|containers|crio|libpod|runc|crun|k3s|kata-containers|snapd/ns)/`),
		"a container"},
	{regexp.MustCompile(
		`^/var/lib/docker/(?:overlay2?|aufs|devicemapper|btrfs|zfs|vfs|containers|volumes|plugins|netns|rootfs)/`),
		"a container"},
	{regexp.MustCompile(`^/var/lib/containers/storage/overlay(?:-containers)?(?:/|$)`), "a container"},
	{regexp.MustCompile(
		`^/var/lib/(?:containerd|rancher|k0s|lxc|lxd|incus|machines)/.*/(?:rootfs|merged|fs|pods)(?:/|$)`),
		"a container"},
	{regexp.MustCompile(`^/var/lib/kubelet/(?:pods|plugins)/`), "a container"},
	{regexp.MustCompile(`/\.local/share/(?:containers|docker)/|/overlay2?/[^/]+/merged$`), "a container"},
	{regexp.MustCompile(`^(?:/var/lib/snapd)?/snap/[^/]+/[^/]+$`), "a version of its package"},
	{regexp.MustCompile(`^(?:/run)?/media/`), "a medium"},
	{regexp.MustCompile(`^/tmp/\.mount_`), "a program"},
	{regexp.MustCompile(`^/sys/kernel/debug/tracing$`), "its first use"},
}

// explainTransient returns why a mount point must not be checked, "" if it may be.
func explainTransient(path string) string {
	for _, one := range transients {
		if one.paths.MatchString(filepath.Clean(path)) {
			return fmt.Sprintf("%s comes and goes with %s; take it out", path, one.with)
		}
	}
	return ""
}

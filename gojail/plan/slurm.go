// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path/filepath"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
)

// planSlurmMounts plans the mounts of the node's Slurm with which `srun` works inside the jail.
//
// Each command in /usr/bin is a mount of its own, because no mount of one directory shows users the same. Over
// /usr/bin it hides the jail's own commands. At another place /usr/bin/srun is missing, and srun is found only with
// another PATH. Symbolic links need a root that gojail may write to, but the root is the site's, often one for many
// nodes. The contents of an overlay on /usr/bin are undefined once somebody changes the jail's root below it
// (overlayfs.rst), as its owner may. A Slurm in a directory of its own, host = ["/opt/slurm"], is one mount.
func planSlurmMounts(c *config.Config, facts *node.HostFacts) []specs.Mount {
	paths := []string{c.Slurm.Conf}
	paths = append(paths, c.Slurm.Host...)
	paths = append(paths, facts.SlurmDirs...)
	paths = append(paths, facts.SlurmFiles...)
	paths = append(paths, facts.Libraries...)
	mounts := planCacheMounts(&c.Slurm)
	for _, path := range paths {
		if path != c.Slurm.Cache && !Inside(mounts, path) {
			mounts = append(mounts, Bind(path, hostReadonly...))
		}
	}
	if needsMungeMount(c) {
		// Each sandbox mounts the current socket over this: munged creates a new one whenever it starts.
		m := Bind(c.Slurm.Munge, mungeOptions...)
		m.Source = "/dev/null"
		mounts = append(mounts, m)
	}
	return mounts
}

var mungeOptions = []string{"bind", "ro", "nosuid", "nodev", "noexec"}

// needsMungeMount reports whether munge's socket needs a mount of its own: no directory of the host that is mounted
// contains it.
func needsMungeMount(c *config.Config) bool {
	return !slices.ContainsFunc(append([]string{c.Slurm.Conf}, c.Slurm.Host...), func(dir string) bool {
		return config.Under(c.Slurm.Munge, dir)
	})
}

// planSpoolMounts plans the mount point of batch scripts. The directory of this node is created in a tmpfs: on the
// jail's storage, each node would need one.
func planSpoolMounts(c *config.Config) []specs.Mount {
	mounts := []specs.Mount{Tmpfs(c.Slurm.Spool, "mode=755", "nosuid", "nodev")}
	if c.Slurm.SpoolBase != c.Slurm.Spool {
		mounts = append([]specs.Mount{Tmpfs(c.Slurm.SpoolBase, "ro", "mode=755", "size=4k", "nosuid", "nodev",
			"noexec")}, mounts...)
	}
	return mounts
}

// planOptionalLinks returns links that name the node's files that a step with --jail-root=range does not get. A package
// in the jail can then install them, while a mounted file cannot be replaced.
func planOptionalLinks(paths []string) []Link {
	var links []Link
	for _, path := range paths {
		links = append(links, Link{filepath.Join(contract.OptionalDir, strings.ReplaceAll(path[1:], "/", ":")), path})
	}
	return links
}

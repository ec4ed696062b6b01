// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"path/filepath"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
)

// planCacheMounts plans a mount of the directory of the fetched slurm.conf. It does not mount the files, because slurmd
// replaces them.
func planCacheMounts(s *config.Slurm) []specs.Mount {
	if s.Cache == "" {
		return nil
	}
	m := Bind(contract.CacheInJail, hostReadonly...)
	m.Source = s.Cache
	return []specs.Mount{m}
}

// planCacheLinks plans symlinks with the directory's names on the node. The sandbox of a batch job has a spool
// directory of its own, with the first link (spank/launcher/assemble.c).
func planCacheLinks(s *config.Slurm) []Link {
	if s.Cache == "" {
		return nil
	}
	links := []Link{{filepath.Join(s.Spool, contract.CacheLink), contract.CacheInJail}}
	if isMounted := func(dir string) bool { return config.Under(node.RunConf, dir) }; !slices.ContainsFunc(
		append([]string{s.Conf}, s.Host...), isMounted) {
		links = append(links, Link{node.RunConf, contract.CacheInJail})
	}
	return links
}

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

// planCacheMounts show the directory, not the files: slurmd replaces them.
func planCacheMounts(s *config.Slurm) []specs.Mount {
	if s.Cache == "" {
		return nil
	}
	m := Bind(contract.CacheInJail, hostReadonly...)
	m.Source = s.Cache
	return []specs.Mount{m}
}

// planCacheLinks are the names that it has on the node. The sandbox of a batch job has
// a spool directory of its own, with the first of them (spank/launcher/assemble.c).
func planCacheLinks(s *config.Slurm) []Link {
	if s.Cache == "" {
		return nil
	}
	links := []Link{{filepath.Join(s.Spool, contract.CacheLink), contract.CacheInJail}}
	if brought := func(dir string) bool { return config.Under(node.RunConf, dir) }; !slices.ContainsFunc(append([]string{s.Conf}, s.Host...), brought) {
		links = append(links, Link{node.RunConf, contract.CacheInJail})
	}
	return links
}

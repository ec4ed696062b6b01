// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"path/filepath"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// "Configless" Slurm: a node without slurm.conf has slurmd fetch it from slurmctld, with
// plugstack.conf and others, into SlurmdSpoolDir/conf-cache. slurmd makes the symlink
// /run/slurm/conf to it for commands, and SLURM_CONF of every task names the file there
// (_establish_configuration in slurmd.c, setup_env in env.c).
const (
	cacheName = "conf-cache"
	runConf   = "/run/slurm/conf"
)

// look finds slurmd's copy. A slurm.conf of the node's own comes first, as with Slurm.
func (s *Slurm) look() {
	has := func(dir string) bool { return exists(filepath.Join(dir, "slurm.conf")) }
	if cache := filepath.Join(s.Spool, cacheName); has(cache) {
		s.Cache = cache
	}
	switch {
	case has(s.Conf):
	case s.Cache != "":
		s.Conf = s.Cache
	case has(runConf): // of sackd, on a submit host
		s.Conf = runConf
	}
}

// cacheMounts show the directory, not the files: slurmd replaces them.
func (s *Slurm) cacheMounts() []specs.Mount {
	if s.Cache == "" {
		return nil
	}
	m := bind(cacheInJail, hostReadonly...)
	m.Source = s.Cache
	return []specs.Mount{m}
}

// cacheLinks are the names that it has on the node. The sandbox of a batch job has
// a spool directory of its own, with the first of them (spank/holder.c).
func (s *Slurm) cacheLinks() []Link {
	if s.Cache == "" {
		return nil
	}
	links := []Link{{filepath.Join(s.Spool, cacheName), cacheInJail}}
	if brought := func(dir string) bool { return under(runConf, dir) }; !slices.ContainsFunc(append([]string{s.Conf}, s.Host...), brought) {
		links = append(links, Link{runConf, cacheInJail})
	}
	return links
}

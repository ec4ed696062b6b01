// SPDX-License-Identifier: Apache-2.0

package node

import (
	"path/filepath"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/rootpath"
)

// RunConf is a symlink that slurmd creates for Slurm's commands. In "configless" Slurm, a node without
// slurm.conf has slurmd fetch it from slurmctld, with plugstack.conf and others, into
// SlurmdSpoolDir/conf-cache. The symlink leads there, and SLURM_CONF of every task names the file there
// (_establish_configuration in slurmd.c, setup_env in env.c).
const RunConf = "/run/slurm/conf"

// findSlurmConfCopy sets Conf and Cache to the copy of slurm.conf that slurmd fetched. As with Slurm, the
// node's own slurm.conf takes precedence.
func findSlurmConfCopy(s *config.Slurm) {
	has := func(dir string) bool { return rootpath.Exists(filepath.Join(dir, "slurm.conf")) }
	if cache := filepath.Join(s.Spool, contract.CacheLink); has(cache) {
		s.Cache = cache
	}
	switch {
	case has(s.Conf):
	case s.Cache != "":
		s.Conf = s.Cache
	case has(RunConf): // sackd fetched it on a submit host
		s.Conf = RunConf
	}
}

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"path/filepath"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/rootpath"
)

// "Configless" Slurm: a node without slurm.conf has slurmd fetch it from slurmctld, with
// plugstack.conf and others, into SlurmdSpoolDir/conf-cache. slurmd makes the symlink
// /run/slurm/conf to it for commands, and SLURM_CONF of every task names the file there
// (_establish_configuration in slurmd.c, setup_env in env.c).
const RunConf = "/run/slurm/conf"

// findSlurmConfCopy finds slurmd's copy. A slurm.conf of the node's own comes first, as with Slurm.
func findSlurmConfCopy(s *config.Slurm) {
	has := func(dir string) bool { return rootpath.Exists(filepath.Join(dir, "slurm.conf")) }
	if cache := filepath.Join(s.Spool, contract.CacheLink); has(cache) {
		s.Cache = cache
	}
	switch {
	case has(s.Conf):
	case s.Cache != "":
		s.Conf = s.Cache
	case has(RunConf): // of sackd, on a submit host
		s.Conf = RunConf
	}
}

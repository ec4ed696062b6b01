// SPDX-License-Identifier: Apache-2.0

package check

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/rootpath"
)

// How long Slurm waits at most for the end of a job (slurm_spank_job_epilog), with a second for processes that have to
// be reaped: without a network, and with one.
const (
	endMostNet = 10 * time.Second
	endReap    = 2 * time.Second
)

// checkEpilog compares Slurm's own limit with the plugin's: slurmd drains a node ("Epilog error") where the end of a job
// took longer. Up to 24.11 the limit is PrologEpilogTimeout; later releases have EpilogTimeout as well (slurm.conf(5)).
func (k *checker) checkEpilog(conf node.SlurmConf) {
	most, why := contract.EndMost+endReap, ""
	if network := filepath.Join(filepath.Dir(k.config.Path), contract.NetworkConfig); rootpath.Exists(network) {
		most, why = endMostNet+endReap, " with networks"
	}
	for _, name := range []string{"EpilogTimeout", "PrologEpilogTimeout"} {
		value := conf.Values[strings.ToLower(name)]
		seconds, err := strconv.ParseUint(value, 10, 16)
		if value == "" || err != nil {
			continue // not set, or "INFINITE"
		}
		if limit := time.Duration(seconds) * time.Second; limit < most {
			k.warn("slurm", "set it to "+strconv.Itoa(int(most/time.Second))+" or more, or leave it out",
				"%s=%d in slurm.conf: the end of a job may take %v%s, and slurmd drains a node where it takes longer", name, seconds, most, why)
		}
		return // EpilogTimeout is the one that counts
	}
}

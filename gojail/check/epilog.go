// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strconv"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
)

// reapTime is what slurm_spank_job_epilog may take to reap processes, beyond its deadline.
const reapTime = 2 * time.Second

// checkEpilog reports a time limit of slurm.conf that is below the plugin's: slurmd drains a node
// ("Epilog error") if the end of a job takes longer. Up to 24.11 the limit is PrologEpilogTimeout;
// later releases also have EpilogTimeout (slurm.conf(5)).
func (c *checker) checkEpilog(conf node.SlurmConf) {
	most, why := contract.EndMost+reapTime, ""
	if c.hasNetworks() {
		most, why = contract.DefaultDeadline+reapTime, " with networks"
	}
	for _, name := range []string{"EpilogTimeout", "PrologEpilogTimeout"} {
		value := conf.Values[strings.ToLower(name)]
		seconds, err := strconv.ParseUint(value, 10, 16)
		if value == "" || err != nil {
			continue // not set, or "INFINITE"
		}
		if limit := time.Duration(seconds) * time.Second; limit < most {
			c.warn("slurm", "set it to "+strconv.Itoa(int(most/time.Second))+" or more, or remove it",
				"%s=%d in slurm.conf: the end of a job may take %v%s, and slurmd drains a node that takes longer", name,
				seconds, most, why)
		}
		return // EpilogTimeout takes precedence
	}
}

// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"bytes"
	"fmt"

	"github.com/gojail/gojail/healthcheck/check"
)

// FindUnkilled names a process of the node that may be one that Slurm could not kill: one that waits in the kernel, one
// in a job's cgroup, or the slurmstepd of a step. It returns "" if there is none. The processes are read anew.
func FindUnkilled(h *check.Host) string {
	all, err := readProcesses(h.Roots.Proc)
	if err != nil || len(all) == 0 {
		return "a list of processes that cannot be read"
	}
	for _, one := range all {
		if why := one.describeUnkilled(); why != "" {
			return fmt.Sprintf("process %s (%.20s), which %s", one.pid, formatLine(one.Name), why)
		}
	}
	return ""
}

// describeUnkilled says why Slurm may not have been able to kill the process, or returns "".
func (p *process) describeUnkilled() string {
	if p.Kernel {
		return ""
	}
	if p.State == 'D' {
		return "waits in the kernel"
	}
	if groups, err := readFile(p.dir + "/cgroup"); err == nil && isInStep(string(groups)) {
		return "belongs to a job"
	}
	if p.Name != "slurmstepd" || !p.isRoot() {
		return "" // reading the title of other processes can hang
	}
	// "slurmstepd: [17.batch]"; that of the scope of all steps, "slurmstepd infinity", is none.
	if title, err := readFile(p.dir + "/cmdline"); err == nil && bytes.Contains(title, []byte("[")) {
		return "is of a step"
	}
	return ""
}

// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Sites keep their node lines in a separate file.
func TestSlurmConfWithIncludes(t *testing.T) {
	h := testHost(t)
	put(t, h.Roots.Etc+"/slurm/slurm.conf", "SlurmctldHost=ctl\nInclude nodes.conf\n")
	put(t, h.Roots.Etc+"/slurm/nodes.conf", "NodeName=DEFAULT Gres=gpu:8 # all\nNodeName=n[1-4] \\\n  CPUs=8\n")
	assert.Equal(t, 8, readGresGPUs(h))
	assert.Equal(t, []string{"ctl"}, readControllerHosts(h))
	put(t, h.Roots.Etc+"/slurm/slurm.conf", "SlurmctldHost=ctl\nInclude gone.conf\n")
	assert.Equal(t, []string{"ctl"}, readControllerHosts(h))
}

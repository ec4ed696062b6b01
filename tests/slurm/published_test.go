// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gojail/gojail/tests/harness"
)

// TestLongStateDirectory: the sockets of a state directory whose path does not fit into a socket's address.
func TestLongStateDirectory(t *testing.T) {
	c := harness.Start(t, jailed)
	long := "/run/gojail/" + fmt.Sprintf("%0100d", 0)
	runAsRoot(t, c, "mkdir -p -m 700 "+long+" && sed -i 's| state=[^ ]*| state="+long+"/%n|' /etc/slurm/plugstack.conf")
	for range 2 {
		requireOutput(t, "debian", c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "cat", marker))
		waitForExpiry()
	}
	assert.NotEmpty(t, readFile(c, long+"/n1/jails/debian/zygote"))
}

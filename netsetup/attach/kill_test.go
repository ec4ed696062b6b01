// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/fake/killtest"
)

// TestKilledAtEachChangeOfAFile kills Attach between the system calls that change a journal,
// a lease and a knob, and sweeps as TestKilledAtEachStepAndSwept does.
func TestKilledAtEachChangeOfAFile(t *testing.T) {
	n := newNode(t, setup{control: true, directory: true, policy: "vlan = 7"})
	job := newJobSpace(t)
	before, empty := n.takeSnapshot(), readSpace(t, job)
	for _, release := range []bool{false, true} {
		for change := 0; ; change++ {
			if release {
				_, err := n.attach(job)
				require.NoError(t, err)
			}
			cmd := n.newCommand(job, order{Release: release, Step: "never"})
			call, err := killtest.Run(cmd, change)
			closeFiles(cmd)
			require.NoError(t, err)
			swept, err := Sweep(t.Context(), n.site, isNeverAlive)
			require.NoError(t, err)
			assert.Empty(t, swept.Problems, "before change %d, %s", change, call)
			requireSame(t, before, n.takeSnapshot(), "before change", change, call)
			requireSame(t, empty, readSpace(t, job), "before change", change, call)
			if call == "" {
				t.Log(change, "changes, release:", release)
				break
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/fake/killtest"
)

// TestKilledAtEachChangeOfAFile is TestKilledAtEachStepAndSwept between the system
// calls of a journal, a lease and a knob.
func TestKilledAtEachChangeOfAFile(t *testing.T) {
	n := newNode(t, setup{control: true, directory: true, policy: "vlan = 7"})
	job := jobSpace(t)
	before, empty := n.snapshot(), inside(t, job)
	for _, release := range []bool{false, true} {
		for change := 0; ; change++ {
			if release {
				_, err := n.attach(job)
				require.NoError(t, err)
			}
			cmd := n.command(job, order{Release: release, Step: "never"})
			call, err := killtest.Run(cmd, change)
			closeFiles(cmd)
			require.NoError(t, err)
			swept, err := Sweep(t.Context(), n.site, nobody)
			require.NoError(t, err)
			assert.Empty(t, swept.Problems, "before change %d, %s", change, call)
			same(t, before, n.snapshot(), "before change", change, call)
			same(t, empty, inside(t, job), "before change", change, call)
			if call == "" {
				t.Log(change, "changes, release:", release)
				break
			}
		}
	}
}

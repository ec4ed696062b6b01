// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestWatchLaterSteps: a task of a job looks at the processes of its later steps from
// the moment they are its user's: slurmstepd has made them, and whatever it has open
// they have until they execute.
func TestWatchLaterSteps(t *testing.T) {
	s := sharedSite(t)
	steps := countRounds(12, 200)
	// The look begins before the first of the steps and ends after the last one, on a busy machine too.
	const watching = "/home/alice/watching" // in the jail
	step := "srun --overlap -n1 "
	script := fmt.Sprintf("%[1]srm -f %[2]s; %[1]senv ATTACK_WATCHING=%[2]s %[3]s run watch & until %[1]stest -e %[2]s; do :; done; "+
		"for i in $(seq %[4]d); do srun --overlap -n2 true; done; %[1]srm %[2]s; wait", step, watching, attackPath, steps)
	watch := func(jail string) string {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		cmd := s.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{"salloc", "-Q", "-wn1", "-n4", "--jail=" + jail, "sh", "-c", script}})
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	t.Run("open", func(t *testing.T) {
		s.startVictim(t, "node", onNode) // who is to be seen in the control
		out := watch("open")
		for try := 0; try < 5 && !strings.Contains(out, "watch "+escaped); try++ { // a step's process may execute between two looks
			out = watch("open")
		}
		assert.Contains(t, out, "watch "+escaped, "control")
	})
	t.Run("closed", func(t *testing.T) {
		assert.Contains(t, watch("closed"), "watch "+held)
	})
	t.Run("closed, all processes shown", func(t *testing.T) {
		s.configure(t, `root = "/srv/jails/closed"`, "root = \"/srv/jails/closed\"\nhidepid = false")
		out := watch("closed")
		for try := 0; try < 5 && strings.Contains(out, "too late"); try++ {
			out = watch("closed")
		}
		assert.Contains(t, out, "watch "+held+" nothing of the node")
	})
}

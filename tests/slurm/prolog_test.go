// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

func TestTaskPrologRunsInTheJail(t *testing.T) {
	c := sharedCluster(t)
	writeInJail(t, c, "/home/alice/prolog", "#!/bin/sh\necho \"export FROM=$(cat /etc/gojail-jail)\"\n")
	requireOutput(t, "debian", c.Run(harness.Alice, "srun", "--jail=debian", "--task-prolog=/home/alice/prolog", "sh", "-c", "echo $FROM"))
}

func TestTaskEpilogRunsInTheJail(t *testing.T) {
	c := sharedCluster(t)
	removeFromJail(t, c, "epilog.out")
	writeInJail(t, c, "/home/alice/epilog", "#!/bin/sh\n{ cat /etc/gojail-jail; id -u; } >/home/alice/epilog.out\n")
	r := c.Run(harness.Alice, "srun", "--jail=debian", "--task-epilog=/home/alice/epilog", "sh", "-c", "exit 3")
	assert.Equal(t, 3, r.Code, r)
	text, err := os.ReadFile(c.Path(jailHome + "epilog.out"))
	require.NoError(t, err, r)
	assert.Equal(t, "debian\n5001\n", string(text))
	requireMissing(t, c, "/home/alice/epilog.out")
}

func TestSiteTaskPrologAndEpilog(t *testing.T) {
	c := sharedCluster(t)
	removeFromJail(t, c, "site.out")
	r := c.Do(harness.Command{User: harness.Alice, Env: []string{"SITE_PROLOG=1", "SITE_EPILOG=/home/alice/site.out"},
		Args: []string{"srun", "--jail=debian", "true"}})
	requireOutput(t, "site prolog in debian", r)
	text, err := os.ReadFile(c.Path(jailHome + "site.out"))
	require.NoError(t, err, r)
	assert.Equal(t, "debian\n", string(text))
}

// TestSignalsAndExitCodesPassTheEpilog: the window of the task epilog changes no result.
func TestSignalsAndExitCodesPassTheEpilog(t *testing.T) {
	c := sharedCluster(t)
	for script, code := range map[string]int{"exit 7": 7, "kill -KILL $$": 137, "kill -SEGV $$": 139, "true": 0} {
		r := c.Run(harness.Alice, "srun", "--jail=debian", "sh", "-c", script)
		assert.Equal(t, code, r.Code, "%s: %s", script, r)
	}
}

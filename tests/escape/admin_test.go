// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestAdministratorInTheJail covers root in a jail by gojail's own commands, where every
// program may be the attacker's: it checks what such a program can reach.
func TestAdministratorInTheJail(t *testing.T) {
	s := sharedSite(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	job := s.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{"srun", "-Q", "-wn1", "--jail=closed", attackPath, "victim", "job-of-alice"}})
	require.NoError(t, job.Start())
	defer func() {
		s.endProcesses("attack victim job-of-alice")
		job.Wait()
	}()
	var id string
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		id = strings.TrimSpace(s.Root("squeue", "-h", "-t", "R", "-o", "%i").Stdout)
		return id != "" && s.countLeft("victim job-of-alice") == 1
	}))
	attacks := []string{"view", "descriptors", "setns", "handle", "beneath", "unmask", "fresh-mounts", "sysctl", "mknod", "init_module"}
	gojail := []string{"gojail", "--node=n1", "--state=/run/gojail/%n"}
	for _, p := range []place{
		{name: "gojail enter", user: "root", command: slices.Concat(gojail, []string{"enter", id, "--"})},
		{name: "gojail enter -u alice", user: "root", command: slices.Concat(gojail, []string{"enter", id, "-u", "alice", "--"})},
		{name: "gojail enter -u root", user: "root", command: slices.Concat(gojail, []string{"enter", id, "-u", "root", "--"})},
		{name: "gojail run", user: "root", command: slices.Concat(gojail, []string{"run", "closed", "--"})},
	} {
		t.Run(p.name, func(t *testing.T) {
			for attack, v := range s.runAttacks(t, p, attacks...) {
				assert.Equal(t, held, v.word, "%s: %s", attack, v)
			}
		})
	}
}

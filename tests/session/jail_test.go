// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestSessionChoosesAJail requires that SLURM_JAIL chooses among the sandboxes of the user's jobs, of those of one job if SLURM_JOB_ID
// names that, and that no session is elsewhere if there is none of that jail.
func TestSessionChoosesAJail(t *testing.T) {
	s := sharedSite(t)
	const seen = "echo $SLURM_JOB_ID $SLURM_JAIL $(cat /etc/gojail-jail)"
	ssh := func(job, jail string) harness.Result {
		args := append(listSSHArguments("ssh", shells), "-oSetEnv="+strings.TrimSpace(job+" SLURM_JAIL="+jail), "alice@127.0.0.1", seen)
		return s.Run(harness.Alice, args...)
	}
	t.Cleanup(func() { require.NoError(t, s.WriteConfig(configuration)) })
	require.NoError(t, s.WriteConfig(strings.Replace(configuration, "[slurm]", "[session]\nwithout_job = \"node\"\n[slurm]", 1)))
	requireRefused(t, `SLURM_JAIL: you have no job in jail "debian" on this node`, ssh("", "debian"))
	require.NoError(t, s.WriteConfig(configuration))

	first := s.startJob(t, harness.Alice, "--jail=debian")
	second := s.startJob(t, harness.Alice, "--jail=debian")
	require.Zero(t, s.Run(harness.Alice, "srun", "-Q", "--overlap", "--jobid="+second, "--jail=other", "true").Code)
	requireOutput(t, second+" other other", s.runSSH(harness.Alice, "none", shells, seen))
	requireOutput(t, second+" other other", ssh("", ""))
	requireOutput(t, second+" debian debian", ssh("", "debian"))
	requireOutput(t, second+" other other", ssh("SLURM_JOB_ID="+second, "other"))
	requireOutput(t, first+" debian debian", ssh("SLURM_JOB_ID="+first, "debian"))
	requireRefused(t, "SLURM_JAIL: job "+first+` is not in jail "other" on this node, but in jail "debian"`, ssh("SLURM_JOB_ID="+first, "other"))
	for _, jail := range []string{"root", "deb", "debian+", "none", "../debian", "."} {
		requireRefused(t, `SLURM_JAIL: you have no job in jail "`+jail+`" on this node`, ssh("", jail))
	}
	requireRefused(t, "SLURM_JAIL: the name of a jail has at most", ssh("", strings.Repeat("x", 5000)))
	s.endJob(t, second)
	requireRefused(t, `SLURM_JAIL: you have no job in jail "other" on this node`, ssh("", "other"))

	// The site's default is no jail, and a step of the session's is in the jail of the session.
	requireOutput(t, "debian", s.runSSH(harness.Alice, "none", shells, "srun -Q --overlap cat /etc/gojail-jail"))
}

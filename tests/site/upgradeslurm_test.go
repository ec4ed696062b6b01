// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestUpgradeSlurm: as docs/upgrades.md says, from Debian 13's 24.11 to Debian testing's 26.05. Slurm does not go back, so this
// is the last test, by its file's name, and the site is of no use to others after it.
func TestUpgradeSlurm(t *testing.T) {
	if _, err := os.Stat(filepath.Join(repository, "build/site/slurm-26.05")); err != nil {
		t.Skip("needs the packages of Slurm 26.05: make site, where Debian testing has it")
	}
	s := sharedSite(t)
	steps := readProcedure(t, "upgrades.md", "Upgrade Slurm")
	require.Len(t, steps, 5)
	before := s.inventory()
	requireOutput(t, s.head.run("", "slurmctld -V | grep -o '24[.]11'"), "24.11")
	s.submitJob(t, "n1").requireGoesOn(t)

	steps.requireSays(t, 1, "Drain the nodes")
	s.drain(t)
	r := s.head.run("alice", "sbatch --parsable -o waited -w n1 --wrap 'cat "+marker+"'")
	require.Zero(t, r.Code, r)
	waiting := &job{s, strings.TrimSpace(r.Stdout), 1}

	steps.requireSays(t, 2, "in Slurm's own order")
	steps.requireSays(t, 2, "gojail stays as it is")
	const upgrade = "cd /site/slurm-26.05 && apt-get install -qy ./*.deb"
	requireAll(t, s.onlyHead(), upgrade)
	requireAll(t, s.nodes(), upgrade)
	steps.requireSays(t, 3, "Restart slurmctld, then slurmd")
	for _, g := range s.controllers() {
		requireAll(t, []*guest{g}, "systemctl restart slurmctld")
	}
	requireAll(t, s.nodes(), "systemctl restart slurmd")
	steps.requireSays(t, 4, "`gojail init JAIL` for each jail, then `gojail reload`")
	requireAll(t, s.nodes(), initJail+" && gojail reload")
	steps.requireSays(t, 5, "`gojail check`")
	requireAll(t, s.nodes(), "gojail check")

	requireOutput(t, s.n1.run("", "slurmd -V | grep -o '26[.]05'"), "26.05")
	s.resume(t)
	assert.Equal(t, "COMPLETED", waiting.waitEnd(), "%v", waiting.describe())
	requireOutput(t, s.head.run("alice", "cat waited"), "debian")
	requireOutput(t, s.runInJail("n[1-2]", "cat "+marker), "debian", "debian")
	s.requireWholeNode(t, s.n1)
	s.submitJob(t, "n1").requireGoesOn(t)
	assert.True(t, poll(3*time.Minute, func() bool {
		return strings.Count(s.head.run("", "sacct -nXP -S now-1day -u alice -o JobName,State").Stdout, "waits|COMPLETED\n") >= 2
	}), "%v", s.head.run("", "sacct -X"))
	s.assertNothingLeft(t, before)
	for _, g := range s.guests() {
		assert.Empty(t, strings.TrimSpace(g.run("", "dpkg --audit").Stdout))
	}
}

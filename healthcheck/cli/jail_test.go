// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// jailHealth is a health.toml with the check of jails alone.
func jailHealth() string {
	head, _, _ := strings.Cut(health, "[jail]")
	var others []string
	for line := range strings.Lines(only("jail")) {
		others = append(others, line)
	}
	text := strings.Replace(strings.Join(others, ""), "[check.jail]\noff = false\n", "[check.jail]\nbad = 1\ngood = 1\n", 1)
	return head + "[jail]\nlibdir = \"" + harness.Prefix + "/lib/gojail\"\nstate = \"/run/gojail/%n\"\n" + text
}

// The storage of two jails goes silent: the node is drained with a reason that names jail, root and storage,
// and returns when the storage is back.
func TestStorageOfJailsGoesSilent(t *testing.T) {
	if why := harness.Missing(); why != "" {
		t.Skip(why)
	}
	binary, err := os.ReadFile(build(t))
	require.NoError(t, err)
	c := harness.Start(t, harness.Options{
		Plugin: true, Jails: []string{"debian", "other"},
		Files:     map[string]string{program: string(binary), "/etc/gojail/health.toml": jailHealth()},
		SlurmConf: map[string]string{"HealthCheckProgram": program, "HealthCheckInterval": "3", "HealthCheckNodeState": "ANY"},
	})
	runs(t, c, 2)
	becomes(t, c, "n1", "State=IDLE ")
	stop, err := c.Hang("/srv/jails")
	require.NoError(t, err)
	t.Cleanup(stop)
	becomes(t, c, "n1", "State=IDLE+DRAIN ",
		"Reason=jail: jail debian: /srv/jails/debian: its storage hang (fuse.hang) does not answer; and more [node_problem] gojail (id ", "[root@")
	runs(t, c, 2)
	becomes(t, c, "n1", "State=IDLE+DRAIN ", "its storage hang (fuse.hang) does not answer")
	// As slurmd does when it cannot kill a process: that is part of the outage, and ends with it.
	require.Zero(t, c.Root("scontrol", "update", "nodename=n1", "state=drain", "reason=Kill task failed").Code)
	runs(t, c, 2)
	becomes(t, c, "n1", "State=IDLE+DRAIN ", "Reason=Kill task failed [root@")
	stop()
	returns(t, c)
}

// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/node"
)

// TestCheckOfTheHealthProgram has settings of slurm.conf with which gojail's health check runs, or does not.
func TestCheckOfTheHealthProgram(t *testing.T) {
	const never = "WARN  health: without HealthCheckInterval slurmd never runs HealthCheckProgram="
	dir := t.TempDir()
	program := filepath.Join(dir, healthProgram)
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	for name, test := range map[string]struct{ program, state, interval, timeout, want string }{
		"none":                   {"", "START_ONLY", "", "", ""},
		"another program":        {"/usr/sbin/nhc", "START_ONLY", "", "", ""},
		"as documented":          {program, "ANY,CYCLE", "60", "", "OK    health: slurmd runs " + program},
		"the default state":      {program, "", "60", "", "OK    health"},
		"with a limit":           {program, "any", "60", "30", "OK    health"},
		"not installed":          {dir + "/sbin/" + healthProgram, "", "60", "", "WARN  health: HealthCheckProgram=" + dir + "/sbin/gojail-healthcheck does not exist: nothing checks this node; "},
		"no interval":            {program, "ANY", "", "", never},
		"an interval of 0":       {program, "ANY", "0", "", never},
		"at the start":           {program, "start_only", "60", "", "WARN  health: HealthCheckNodeState=START_ONLY: gojail-healthcheck runs only when"},
		"at the start, no time":  {program, "START_ONLY", "", "", "WARN  health: HealthCheckNodeState=START_ONLY: "},
		"after a reboot":         {program, "REBOOT_ONLY", "", "", "WARN  health: HealthCheckNodeState=REBOOT_ONLY: "},
		"a short limit":          {program, "ANY", "60", "20", "WARN  health: HealthCheckTimeout=20: slurmd kills gojail-healthcheck, which may take 20s"},
		"a limit that is no one": {program, "ANY", "60", "0", "OK    health"},
	} {
		found := ""
		c := &checker{report: func(f Finding) { found += f.String() }}
		c.checkHealthProgram(node.SlurmConf{Dir: dir, Values: map[string]string{"healthcheckprogram": test.program,
			"healthchecknodestate": test.state, "healthcheckinterval": test.interval, "healthchecktimeout": test.timeout}})
		if test.want == "" {
			assert.Empty(t, found, name)
		}
		assert.True(t, strings.HasPrefix(found, test.want), "%s: %s", name, found)
	}
}

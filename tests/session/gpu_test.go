// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// withGPUs adds two GPUs to each node in slurm.conf, which gres.conf must name.
func withGPUs(conf map[string]string) map[string]string {
	node := " NodeAddr=" + harness.Address + " CPUs=2 Gres=gpu:2 State=UNKNOWN Port="
	conf["GresTypes"], conf["NodeName"] = "gpu", "n1"+node+"6818\nNodeName=n2"+node+"6819"
	return conf
}

// TestSessionHasTheJobsGPUs requires that a session sees the GPUs of its job, and no others. They are consoles here.
func TestSessionHasTheJobsGPUs(t *testing.T) {
	if why := findMissing(); why != "" {
		t.Skip(why)
	}
	for _, path := range []string{"/dev/tty60", "/dev/tty61", "/dev/tty62"} {
		if _, err := os.Stat(path); err != nil {
			t.Skip("needs ", path)
		}
	}
	s, err := newSite(harness.Options{SlurmConf: withGPUs(map[string]string{}),
		Files: map[string]string{"/etc/slurm/gres.conf": "NodeName=n[1-2] Name=gpu File=/dev/tty61\nNodeName=n[1-2] Name=gpu File=/dev/tty62\n"},
	})
	if s != nil {
		t.Cleanup(func() { require.NoError(t, s.Stop()) })
	}
	require.NoError(t, err)
	s.ShowLogs(t)
	require.NoError(t, s.WriteConfig(strings.Replace(configuration, "[jail.debian]\n", "[jail.debian]\ndevices = [\"/dev/tty6[0-2]\"]\n", 1)))
	const list = "echo $(ls -d /dev/tty6*)"
	first := s.startJob(t, harness.Alice, "--jail=debian", "--gres=gpu:1")
	second := s.startJob(t, harness.Alice, "--jail=debian", "--gres=gpu:1")
	for _, port := range []string{forced, shells} {
		requireOutput(t, "/dev/tty60 /dev/tty61", s.runSSH(harness.Alice, first, port, list))
		requireOutput(t, "/dev/tty60 /dev/tty62", s.runSSH(harness.Alice, second, port, list))
	}
	s.endJob(t, first)
	s.endJob(t, second)
	s.startJob(t, harness.Alice, "--jail=debian")
	requireOutput(t, "/dev/tty60", s.runSSH(harness.Alice, "none", shells, list))
	assert.NotContains(t, s.Drained(), "n1")
}

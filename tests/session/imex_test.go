// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestSessionHasTheJobsIMEXChannel: the channel that Slurm gives a step is there in the sessions of its job, too, in one that began
// before the step as well, and in no other job's.
func TestSessionHasTheJobsIMEXChannel(t *testing.T) {
	const channels = "/dev/nvidia-caps-imex-channels"
	if why := findMissing(); why != "" {
		t.Skip(why)
	}
	if harness.Version() < "24.11" {
		t.Skip("needs Slurm 24.11, which has switch/nvidia_imex")
	}
	if there, _ := filepath.Glob(channels + "/*"); len(there) > 0 {
		t.Skip("needs a machine without IMEX channels: slurmd removes them")
	}
	t.Cleanup(func() { os.Remove(channels) }) // slurmd makes it, in the /dev of this machine
	s, err := newSite(harness.Options{SlurmConf: map[string]string{"PrologFlags": "Alloc", "Prolog": libDir + "prolog-1",
		"SwitchType": "switch/nvidia_imex", "SwitchParameters": "imex_dev_major=1,imex_channel_count=8"}})
	if s != nil {
		t.Cleanup(func() { require.NoError(t, s.Stop()) })
	}
	require.NoError(t, err)
	s.ShowLogs(t)
	const list = "echo $(ls " + channels + " 2>&1 | sed s/^.*No.such.*/none/)"
	first := s.allocate(t, harness.Alice, nil, "--jail=debian", "-n1")
	second := s.allocate(t, harness.Alice, nil, "--jail=debian", "-n1")
	requireOutput(t, "none", s.runSSH(harness.Alice, first, shells, list))
	running := s.startInBackground(t, harness.Alice, formatSSHCommand(harness.Alice, first, shells,
		"until [ -c "+channels+"/channel1 ]; do sleep 0.1; done; touch /tmp/seen; exec sleep 7010")...)
	require.NotNil(t, running.Process)
	for job, want := range map[string]string{first: "channel1", second: "channel2"} {
		requireOutput(t, want, s.Run(harness.Alice, "srun", "-Q", "--jobid="+job, "--jail=debian", "sh", "-c", list))
		requireOutput(t, want, s.runSSH(harness.Alice, job, shells, list))
	}
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		_, err := os.Stat(s.Path("/var/lib/gojail/n1/jobs/" + first + "/tmp/seen"))
		return err == nil
	}), "a session that began before the step sees the channel of its job")
}

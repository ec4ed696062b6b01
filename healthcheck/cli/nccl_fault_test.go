// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// An inconclusive result drains no node.
func TestNCCLFaultsOfTheInfrastructure(t *testing.T) {
	s := startNCCL(t)
	s.say("crash", "n1")
	s.say("garbage", "n2")
	s.say("truncated", "n3")
	s.say("hang", "n4")
	r := s.round()
	assert.Equal(t, 3, r.Exit)
	assert.Equal(t, map[string]string{"n1": "unknown", "n2": "unknown", "n3": "unknown", "n4": "unknown"}, results(r))
	text := ""
	for _, test := range r.Tests {
		text += test.Nodes[0] + " " + test.Text + "\n"
	}
	t.Log(text)
	assert.Regexp(t, `(?m)^n1 job \d+: failed, no result: it is not output of all_reduce_perf$`, text)
	assert.Regexp(t, `(?m)^n2 job \d+: completed, no result: `, text)
	assert.Regexp(t, `(?m)^n3 job \d+: completed, no result: the output is truncated$`, text)
	assert.Regexp(t, `(?m)^n4 its job did not end in time$`, text)

	s.say("good", "n1", "n2", "n3", "n4")
	s.say("crash", "n1+any", "n2+any")
	r = s.round()
	assert.Equal(t, "good alone, unknown with a partner", results(r)["n1"])
	assert.Empty(t, s.c.Drained())
	kept := 0
	for _, test := range r.Tests {
		_, err := os.Stat(s.c.Path("/data/alice/" + test.Name + ".out"))
		if strings.Contains(test.Text, "no result") {
			assert.NoError(t, err, "the output of a test without a result is kept: %s", test.Text)
			kept++
		}
	}
	assert.NotZero(t, kept)

	t.Log("a submission that Slurm refuses")
	s.forget()
	require.Zero(t, s.c.Root("scontrol", "update", "partitionname=low", "state=INACTIVE").Code)
	r = s.round()
	assert.Equal(t, 3, r.Exit)
	assert.Contains(t, r.Tests[0].Text, "not submitted: /usr/bin/sbatch: exit status 1: sbatch: error: ")
	assert.Empty(t, s.c.Drained())
}

func TestNCCLWrongResultsAndTheCapOfDrains(t *testing.T) {
	s := startNCCL(t)
	s.say("wrong", "n2+any")
	s.say("slow 300.00", "n4+any")
	s.configure("drains = 2", "drains = 1")
	r := s.round()
	assert.Equal(t, map[string]string{"n1": "good", "n2": "bad, drained", "n3": "good",
		"n4": "bad, not drained: one round drains at most 1"}, results(r), "the worse of the two")
	assert.Len(t, strings.Fields(s.c.Root("sinfo", "-h", "-t", "drain", "-N", "-p", "main", "-o", "%n").Stdout), 1)
}

// Another job takes the node: this is neither a fault nor a warning, and the node is tested the
// next time.
func TestNCCLAPreemptedJob(t *testing.T) {
	s := startNCCL(t)
	s.say("wait", "n3")
	end := s.begin()
	require.True(t, harness.Poll(harness.Timeout, func() bool { return strings.Contains(s.ran(), "n3 ") }))
	other := s.c.Run(harness.Bob, "srun", "--exclusive", "-w", "n3", "true")
	require.Zero(t, other.Code, other.String())
	r := end()
	assert.Zero(t, r.Exit, r.Summary)
	assert.Equal(t, "runs other jobs", results(r)["n3"])
	assert.Empty(t, s.c.Drained())
	s.idle("n1", "n2", "n3", "n4")
	s.say("good", "n3")
	assert.Equal(t, map[string]string{"n3": "good"}, results(s.round()))
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// killed starts the command and kills it when the condition is met.
func (s ncclSite) killed(when func() bool, args ...string) {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := s.c.Exec(ctx, harness.Command{Args: append([]string{program, "nccl"}, args...)})
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	require.NoError(s, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	require.True(s, harness.Poll(harness.Timeout, func() bool { return when() || len(ended) > 0 }))
	cancel()
	<-ended
	s.Log(output.String())
	assert.NotContains(s, output.String(), "no result", "what was killed loses nothing")
}

func TestNCCLARoundThatIsKilledGoesOn(t *testing.T) {
	s := startNCCL(t)
	s.say("wait", "n2")
	s.say("slow 100.00", "n3+any")
	s.killed(func() bool { return strings.Contains(s.ran(), "n2 ") })
	require.NoError(t, os.WriteFile(s.c.Path("/srv/nccl/go"), nil, 0o644))
	r := s.round()
	assert.Equal(t, map[string]string{"n1": "good", "n2": "good", "n3": "bad, drained", "n4": "good"}, results(r))
	assert.Len(t, strings.Split(strings.TrimSpace(s.ran()), "\n"), len(r.Tests), "each test was done once: %s", s.ran())
}

// The file of a round is lost: its remaining jobs are cancelled, and their results are not
// used.
func TestNCCLJobsOfAForgottenRound(t *testing.T) {
	s := startNCCL(t)
	s.say("wait", "n2")
	s.killed(func() bool { return strings.Contains(s.ran(), "n2 ") })
	require.NoError(t, os.Remove(s.c.Path("/var/lib/health/nccl/round.json")))
	s.idle("n1", "n3", "n4")
	r := s.round()
	assert.Equal(t, map[string]string{"n1": "good", "n3": "good", "n4": "good"}, results(r))
	assert.Equal(t, "allocated", r.Skipped["n2"])
	s.idle("n2")
	assert.Contains(t, s.c.Root("squeue", "-h", "--states=CANCELLED", "-o", "%j").Stdout, "gojail-nccl-")
}

// The command is killed repeatedly, at different times, while it finds a bad node and while it
// retests it. The final state is as if it had never been killed.
func TestNCCLKilledAgainAndAgain(t *testing.T) {
	s := startNCCL(t)
	s.say("slow 100.00", "n3+any")
	round := s.c.Path("/var/lib/health/nccl/round.json")
	again := func(kills int, args ...string) {
		for kill := range kills {
			changes, last := 0, ""
			begin := time.Now()
			s.killed(func() bool { // after so many changes of its memory, a bit later each time
				if text, _ := os.ReadFile(round); string(text) != last {
					changes, last = changes+1, string(text)
				}
				return changes > kill/2 || time.Since(begin) > time.Duration(kill)*150*time.Millisecond
			}, args...)
		}
	}
	again(10)
	if _, err := os.Stat(round); err == nil {
		s.round()
	}
	becomes(t, s.c, "n3", "State=IDLE+DRAIN ", ncclReason)
	assert.Len(t, strings.Split(s.c.Drained(), "\n"), 1)
	ran := strings.Split(strings.TrimSpace(s.ran()), "\n")
	names := []string{}
	for _, line := range ran {
		names = append(names, strings.Fields(line)[0])
	}
	slices.Sort(names)
	assert.Equal(t, len(names), len(slices.Compact(names)), "no test was done twice: %v", ran)

	again(8, "--retest")
	if _, err := os.Stat(round); err == nil {
		s.round()
	}
	becomes(t, s.c, "n3", "State=IDLE+DRAIN ", ncclReason)
	assert.NotContains(t, s.c.Root("scontrol", "show", "reservation").Stdout, "gojail-nccl-")
	s.say("good", "n3+any")
	s.idle("n1", "n2", "n4")
	assert.Equal(t, "good, undrained", results(s.round("--retest"))["n3"])
	s.idle("n3")
}

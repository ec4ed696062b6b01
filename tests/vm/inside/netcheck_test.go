// SPDX-License-Identifier: Apache-2.0

package inside

import (
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

// TestNetCheckOfAJob: an ordinary user's step looks at its rails on two nodes, and
// finds one out where the VLAN of a VF is another one.
func TestNetCheckOfAJob(t *testing.T) {
	c := startNetCluster(t)
	before := describeVFs(t)

	step := []string{"srun", "-N2", "--ntasks-per-node=2", "--overcommit", "--jail=debian", "--jail-net=ai"}
	r := c.Run(harness.Alice, append(step, "/run/gojail/bin/gojail", "net", "check")...)
	require.Zero(t, r.Code, r)
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	slices.Sort(lines)
	assert.Equal(t, []string{"NODE  rail0-n1    rail1-n1", "n1    ok          ok", "n2    ok          ok"}, lines, r)

	r = c.Run(harness.Alice, "srun", "-wn1", "--jail=debian", "--jail-net=r0", "/run/gojail/bin/gojail", "net", "show")
	require.Zero(t, r.Code, r)
	assert.Regexp(t, `(?m)^\d+ +rail0-n1 +net1 +10\.0\.0\.1\d/24 +- +- +0000:\S+ +up$`, r.Stdout)
	assert.Regexp(t, `(?m)^\d+ +control +ctl0 +203\.0\.113\.\d+/32 +169\.254\.1\.1 `, r.Stdout)
	waitForVFs(t, before)

	// The step waits until root has moved a VF of n2 to another VLAN.
	const wait = "while [ ! -e /home/alice/go ]; do sleep 0.2; done; exec /run/gojail/bin/gojail net check --timeout=20s"
	ctx, end := context.WithTimeout(t.Context(), 2*time.Minute)
	defer end()
	job := c.Exec(ctx, harness.Command{User: harness.Alice, Args: []string{"srun", "-N2", "--jail=debian", "--jail-net=ai", "sh", "-c", wait}})
	var out, problems strings.Builder
	job.Stdout, job.Stderr = &out, &problems
	require.NoError(t, job.Start())
	var shown harness.Result
	waitFor(t, "the job's network", func() bool {
		shown = c.Gojail("n2", "net", "show")
		return strings.Contains(shown.Stdout, "rail1-n2")
	})
	assert.Contains(t, shown.Stdout, "attached")
	all := findCards(t)
	for _, number := range []string{"2", "3"} { // n2's VFs of the second card; the one that no job has is set back below
		requireRun(t, "ip link set "+all[1].name+" vf "+number+" vlan 999")
	}
	require.NoError(t, os.WriteFile(c.Path("/srv/jails/debian/home/alice/go"), nil, 0o644))
	assert.Error(t, job.Wait())
	assert.Regexp(t, `(?m)^n1 +ok +0/1$`, out.String(), problems.String())
	assert.Regexp(t, `(?m)^n2 +ok +0/1$`, out.String(), problems.String())
	assert.Contains(t, problems.String(), "n1: rail1-n1: no answer to 10.1.0.")
	for _, number := range []string{"2", "3"} {
		requireRun(t, "ip link set "+all[1].name+" vf "+number+" vlan 0")
	}
	waitForVFs(t, before)
	assert.True(t, c.WaitIdle(), c.Drained())
}

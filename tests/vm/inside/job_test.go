// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestVFMovesIntoAJob gives a VF to a job's network namespace, as root does by
// hand, and finds it back after the job.
func TestVFMovesIntoAJob(t *testing.T) {
	v := findCards(t)[0].makeVFs(t, 1)[0]
	c := harness.Start(t, harness.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const sees = "while [ ! -e /sys/class/net/vf0 ]; do sleep 0.1; done; cat /sys/class/net/vf0/address"
	job := c.Exec(ctx, harness.Command{User: "root", Args: []string{
		"srun", "unshare", "--net", "--mount", "sh", "-c", "mount -t sysfs sysfs /sys; " + sees}})
	var out strings.Builder
	job.Stdout, job.Stderr = &out, &out
	require.NoError(t, job.Start())
	var inside string
	waitFor(t, "the job's task", func() bool {
		inside, _ = tryRun("pgrep -fx 'sh -c mount -t sysfs sysfs /sys; .*'")
		return inside != "" && !strings.Contains(inside, "\n")
	})
	requireRun(t, fmt.Sprintf("ip link set %s netns %s name vf0", v.interfaceName(), inside))
	require.NoError(t, job.Wait(), out.String())
	assert.Equal(t, v.mac, strings.TrimSpace(out.String()))
	v.waitForReturn(t)
	assert.True(t, c.WaitIdle(), c.Drained())
}

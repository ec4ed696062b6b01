// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// TestRaceRemoval has root remove the job's /tmp while a process that outlived the job,
// which is possible in "open", swaps a full directory in it with a link out of it.
func TestRaceRemoval(t *testing.T) {
	s := sharedSite(t)
	const canary, files = "/srv/canary", 200
	dir := s.Path(canary)
	require.NoError(t, os.MkdirAll(dir, 0o755))
	t.Cleanup(func() { os.RemoveAll(dir) })
	fill := func() {
		for i := range files {
			require.NoError(t, os.WriteFile(fmt.Sprintf("%s/%d", dir, i), nil, 0o644))
		}
	}
	left := func() int {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		return len(entries)
	}
	t.Cleanup(func() { s.endLeftovers(t, "swap") })
	const prepare = `mkdir -p a && cd a && touch $(seq 0 199) && cd .. && ln -s ` + canary + ` b && (setsid ` + attackPath + ` swap a b >/dev/null 2>&1 &)`
	fill()
	r := s.Do(harness.Command{User: "root", Args: []string{"sh", "-c", `mkdir /srv/control && cd /srv/control && ` + prepare +
		`; for i in $(seq 1000); do rm -f $(seq -f a/%g 0 199); [ $(ls ` + canary + ` | wc -l) = 200 ] || break; done; rm -rf /srv/control`}}) // may fail because of the race
	assert.Less(t, left(), files, "control: a careless removal follows the link: %v", r)
	s.endLeftovers(t, "swap")
	fill()
	for range countRounds(3, 50) {
		r := s.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail=open", "sh", "-c", "cd /tmp; "+prepare)
		require.Zero(t, r.Code, r)
		require.True(t, s.WaitIdle(), s.Drained())
		gone := harness.Poll(harness.Timeout, func() bool { return s.countLeft("swap") == 0 || len(s.listScratch(t)) == 0 })
		assert.True(t, gone, "left in the scratch directory: %v", s.listScratch(t))
		s.endLeftovers(t, "swap")
		require.Equal(t, files, left(), "files of the node's are removed")
	}
}

// listScratch returns the scratch directories of jobs on n1, without spares.
func (s *site) listScratch(t *testing.T) (jobs []string) {
	t.Helper()
	entries, err := os.ReadDir(s.Path("/var/lib/gojail/n1/jobs"))
	require.NoError(t, err)
	for _, entry := range entries {
		if name := entry.Name(); name[0] >= '0' && name[0] <= '9' {
			jobs = append(jobs, name)
		}
	}
	return jobs
}

// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// killsOnNode are what the soak kills on a node, by SIGKILL.
var killsOnNode = []string{
	"systemctl kill -s KILL --kill-whom=main slurmd",
	"systemctl kill -s KILL --kill-whom=main munge",
	"pkill -KILL -o '^gojail-'",                           // the jail's zygote, or its spare
	"pkill -KILL -n '^gojail-'",                           // the holder of a job, or a launcher at work
	"systemctl restart slurmd",                            // as an administrator does
	"gojail reload; systemctl start gojail-metrics",       // likewise
	`pkill -KILL -n -f 'slurmstepd: \['`,                  // of a step, not the one that keeps Slurm's scope
	"pkill -KILL -f 'gojail (sweep|metrics)|healthcheck'", // what runs now and then
}

// readNumber returns the number in a variable of the environment, or another one.
func readNumber(t *testing.T, name string, other uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return other
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

const soakScript = `rm -rf soak; mkdir soak; cat >soak.sh <<'EOF'
#!/bin/sh
echo batch $(cat %[1]s)
srun -Q sh -c 'echo step $(cat %[1]s); head -c 100000 /dev/zero >/tmp/file'
sleep $((SLURM_ARRAY_TASK_ID %% 3))
EOF
sbatch --parsable --array=1-%[2]d -o soak/%%a.out soak.sh`

// TestSoak: 20 jobs, 2,000 with WHOLE=1, or GOJAIL_SITE_JOBS of them, while daemons and gojail's processes are killed at random.
// A job may fail then, and one that slurmd could not start, or whose slurmstepd was killed, Slurm requeues: it begins two minutes
// later, or waits for a release. But none runs outside its jail, all end, and nothing is left of them.
func TestSoak(t *testing.T) {
	s := sharedSite(t)
	many := uint64(20)
	if os.Getenv("WHOLE") != "" {
		many = 2000
	}
	jobs := readNumber(t, "GOJAIL_SITE_JOBS", many)
	seed := readNumber(t, "GOJAIL_SITE_SEED", uint64(time.Now().UnixNano()))
	t.Logf("GOJAIL_SITE_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	requireOutput(t, s.runInJail("n[1-2]", "cat "+marker), "debian", "debian")
	before := s.inventory()

	r := s.head.run("alice", fmt.Sprintf(soakScript, marker, jobs))
	require.Zero(t, r.Code, r)
	id := strings.TrimSpace(r.Stdout)
	// Slurm holds a job whose launch has failed ("launch failed requeued held").
	hasEnded := func() bool {
		return s.head.run("", "scontrol release "+id+" 2>/dev/null; timeout 60 squeue -rh -j "+id+" | wc -l").Stdout == "0\n"
	}
	// The last jobs are left in peace: all kills on a node would be of theirs.
	kills := uint64(0)
	for ; kills < 2*jobs && !hasEnded(); kills++ {
		if random.IntN(8) == 0 {
			s.head.run("", "systemctl kill -s KILL --kill-whom=main slurmctld")
		} else {
			s.nodes()[random.IntN(2)].run("", killsOnNode[random.IntN(len(killsOnNode))])
		}
		time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond) // between kills, not for something
	}
	// slurmctld learns that a slurmstepd was killed when slurmd registers, a minute after the job's begin at the earliest
	// (BatchStartTimeout). It had not learned it otherwise 94 seconds after such a kill.
	for range 4 + jobs/10 {
		requireAll(t, s.nodes(), "systemctl restart slurmd")
		if poll(150*time.Second, hasEnded) {
			break
		}
	}
	require.True(t, hasEnded(), "%v", s.head.run("", "squeue -r; sinfo -R; journalctl --no-pager -n 60 -u slurmctld"))
	t.Logf("%d jobs, %d kills: %v", jobs, kills,
		s.head.run("", "cat /home/alice/soak/*.out | sort | uniq -c; sacct -nXP -j "+id+" -o State | sort | uniq -c; sinfo -Ro '%E %N'"))
	for line := range strings.Lines(s.head.run("", "cat /home/alice/soak/*.out | grep -E '^(batch|step)'").Stdout) {
		assert.Contains(t, []string{"batch debian\n", "step debian\n"}, line)
	}
	// Slurm itself leaves the cgroup of a job whose slurmstepd was killed, as it does on a node without gojail. rmdir
	// removes one without processes only.
	requireAll(t, s.nodes(), "find /sys/fs/cgroup -depth -type d -path '*/job_*' -exec rmdir {} + 2>/dev/null || true")
	// slurmctld that was killed before it had written that a job had begun, five seconds later at most, begins it again, and
	// drains the node, which has it already.
	if s.head.run("", "sinfo -hRo %E | sort -u").Stdout == "Duplicate jobid\n" {
		requireAll(t, s.onlyHead(), "scontrol update NodeName=$(sinfo -hRo %N | paste -sd,) State=RESUME")
	}
	s.assertNothingLeft(t, before)
}

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

	"github.com/gojail/gojail/tests/harness"
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

// soakScript submits the jobs, of which 20 run at once: an emulated node that begins more has not begun them before the
// deadline. They begin once slurmctld has them on its disk, which it writes five seconds after a change: one that is killed before that
// knows nothing of them. They say in which jail they are and how many VFs they have; each further process takes a tenth of a second.
const soakScript = `rm -rf soak; mkdir soak; cat >soak.sh <<'EOF'
#!/bin/sh
say='read jail <%[1]s; set -- /sys/class/net/net*; [ -e "$1" ] || shift; echo "$jail" $#; echo >/tmp/file'
sh -c "$say"
[ $((SLURM_ARRAY_TASK_ID %% %[4]d)) != 0 ] || srun -Q sh -c "$say"
sleep $((SLURM_ARRAY_TASK_ID %% 3))
EOF
submit() { sbatch --parsable --hold -o soak/%%A_%%a.$1 --array="1-$2" "${@:3}" soak.sh; }
echo $(submit vf %[2]d --gres=nic:rail0:1 --jail-net=ai),$(submit plain %[3]d%%20)`

// soak is the jobs of TestSoak, one in fifty of which, and two more, have a VF.
type soak struct {
	site *site
	jobs uint64
	many bool   // so many that a kill each, and a step in each, would take a day
	ids  string // of the arrays
}

func (s *site) submitSoak(t *testing.T, jobs uint64) *soak {
	t.Helper()
	k := &soak{site: s, jobs: jobs, many: jobs >= 200}
	vfs, steps := 2+jobs/50, 1
	if k.many {
		steps = 10
	}
	r := s.head.run("alice", fmt.Sprintf(soakScript, marker, vfs, jobs-vfs, steps))
	require.Zero(t, r.Code, r)
	require.Regexp(t, `^\d+,\d+\n$`, r.Stdout, r)
	k.ids = strings.TrimSpace(r.Stdout)
	requireAll(t, s.onlyHead(), "sleep 20; sync; for job in $(echo "+k.ids+" | tr , ' '); do scontrol release $job || exit 1; done; sleep 10; sync")
	return k
}

// countScript prints how many of the jobs have not ended, and helps those that Slurm leaves to an administrator. It holds
// one whose launch has failed ("launch failed requeued held"). And slurmctld that was killed before it had written that a job
// had begun, five seconds later at most, begins it again, and drains the node, which has it already.
const countScript = `left=$(timeout 100 squeue -rho '%%i %%r' -j %s) || exit 1
for job in $(echo "$left" | awk '/[Hh]eld/ { print $1 }'); do echo "released $job"; scontrol release $job; done >&2
drained=$(sinfo -hNRo '%%n|%%E')
[ -z "$drained" ] || echo "$drained" >&2
for node in $(echo "$drained" | sed -n 's/|Duplicate jobid$//p' | sort -u); do scontrol update NodeName=$node State=RESUME; done
echo "$left" | grep -c .`

// count returns how many jobs have not ended, and false where slurmctld does not say.
func (k *soak) count(t *testing.T) (left uint64, ok bool) {
	r := k.site.head.run("", fmt.Sprintf(countScript, k.ids))
	left, err := strconv.ParseUint(strings.TrimSpace(r.Stdout), 10, 64)
	if r.Stderr != "" {
		t.Logf("%s", r.Stderr)
	}
	return left, err == nil
}

// killAtRandom kills one thing after another until few jobs are left, and returns how many it has killed. The last jobs are left
// in peace: all kills on a node would be of theirs.
func (k *soak) killAtRandom(t *testing.T, random *rand.Rand) (kills uint64) {
	// Each kill can delay its job by minutes.
	pause, counted := 5*time.Second, time.Now()
	if k.many {
		pause = 30 * time.Second
	}
	for begin := time.Now(); kills < 2*k.jobs; kills++ {
		if k.many && kills%8 == 7 {
			k.recover(t)
		}
		if random.IntN(8) == 0 {
			k.site.head.run("", "systemctl kill -s KILL --kill-whom=main slurmctld")
		} else {
			k.site.nodes()[random.IntN(2)].run("", killsOnNode[random.IntN(len(killsOnNode))])
		}
		time.Sleep(time.Duration(random.Int64N(int64(pause)))) // between kills, not for something
		if time.Since(counted) < 2*pause {
			continue
		}
		if left, ok := k.count(t); ok {
			t.Logf("%4.0f s: %d jobs left, %d kills", time.Since(begin).Seconds(), left, kills+1)
			if left <= k.jobs/20 {
				return kills + 1
			}
		}
		counted = time.Now()
	}
	return kills
}

// recover has slurmctld learn which jobs were killed. Else they hold the places of others, up to all 20: that it has been killed itself
// counts as a sign of life of all jobs.
func (k *soak) recover(t *testing.T) {
	t.Helper()
	time.Sleep(90 * time.Second) // BatchStartTimeout, and half of it again
	requireAll(t, k.site.nodes(), "systemctl restart slurmd")
}

// waitEnd waits until all jobs have ended. slurmctld learns that a slurmstepd was killed when slurmd registers, a minute after
// the job's begin at the earliest (BatchStartTimeout). It had not learned it otherwise 94 seconds after such a kill.
func (k *soak) waitEnd(t *testing.T) {
	t.Helper()
	for range 4 + k.jobs/10 {
		requireAll(t, k.site.nodes(), "systemctl restart slurmd")
		if poll(150*time.Second, func() bool {
			left, ok := k.count(t)
			return ok && left == 0
		}) {
			return
		}
		k.requeueLost(t)
	}
	require.Fail(t, "jobs are left", "%v", k.site.head.run("", "squeue -r; sinfo -R; journalctl --no-pager -n 60 -u slurmctld"))
}

// requeueLost helps jobs that slurmctld has as running for ever: it was killed before it had written that they had ended, and after its
// restart the node said that the job's epilog was done, which takes the node from a job that runs by what was written. Such a job
// is on no node, where slurmctld would find it missing (_purge_missing_jobs).
func (k *soak) requeueLost(t *testing.T) {
	t.Helper()
	for _, g := range k.site.nodes() {
		running := k.site.head.run("", "squeue -rho %A -t R -w "+g.machine.Name+" -j "+k.ids).Stdout
		for _, id := range strings.Fields(running) {
			steps := g.run("", "find /var/lib/slurm/slurmd -name '"+g.machine.Name+"_"+id+".*'")
			if steps.Code == 0 && steps.Stdout == "" {
				t.Logf("%s has no job %s: %v", g.machine.Name, id, k.site.head.run("", "scontrol requeue "+id))
			}
		}
	}
}

// assertInJail wants that no job was outside its jail, or without the VF that it had asked for, and that most have
// succeeded.
func (k *soak) assertInJail(t *testing.T, kills uint64) {
	t.Helper()
	sacct := "sacct -nXP -S now-1day -j " + k.ids
	t.Logf("%d jobs, %d kills: %v", k.jobs, kills, k.site.head.run("", "cd /home/alice/soak; for kind in plain vf; do echo $kind; cat *.$kind | sort | uniq -c; done; "+
		sacct+" -o State | sort | uniq -c; sinfo -Ro '%E %N'"))
	for kind, vfs := range map[string]int{"plain": 0, "vf": 1} {
		requireOutput(t, k.site.head.run("", "cat /home/alice/soak/*."+kind+" | grep -E '^[a-z]* [0-9]+$' | sort -u"), fmt.Sprintf("debian %d", vfs))
	}
	r := k.site.head.run("", sacct+" -o JobID,State | sort -u | grep -c COMPLETED")
	completed, err := strconv.ParseUint(strings.TrimSpace(r.Stdout), 10, 64)
	require.NoError(t, err, "%v", r)
	assert.Greater(t, completed, k.jobs/2, "of %d jobs", k.jobs)
}

// TestSoak: 20 jobs, 2,000 with WHOLE=1, or GOJAIL_SITE_JOBS of them, while daemons and gojail's processes are killed at random.
// A job may fail then, and one that slurmd could not start, or whose slurmstepd was killed, Slurm requeues: it begins two minutes
// later, or waits for a release. But none runs outside its jail, all end, and nothing is left of them.
func TestSoak(t *testing.T) {
	s := sharedSite(t)
	many := uint64(20)
	if os.Getenv("WHOLE") != "" {
		many = 2000
	}
	jobs := harness.ReadNumber(t, "GOJAIL_SITE_JOBS", many)
	seed := harness.ReadNumber(t, "GOJAIL_SITE_SEED", uint64(time.Now().UnixNano()))
	t.Logf("GOJAIL_SITE_SEED=%d", seed)
	requireOutput(t, s.runInJail("n[1-2]", "cat "+marker), "debian", "debian")
	before := s.inventory()
	k := s.submitSoak(t, jobs)
	kills := k.killAtRandom(t, rand.New(rand.NewPCG(seed, 0)))
	k.waitEnd(t)
	k.assertInJail(t, kills)
	// Slurm itself leaves the cgroup of a job whose slurmstepd was killed, as it does on a node without gojail. rmdir
	// removes one without processes only.
	requireAll(t, s.nodes(), "find /sys/fs/cgroup -depth -type d -path '*/job_*' -exec rmdir {} + 2>/dev/null || true")
	s.assertNothingLeft(t, before)
}

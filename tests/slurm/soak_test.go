// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// soakScript submits jobs that say in which jail they are, each kind to files of its own: in the jail debian, in the jail other, and
// with a mount of their own, which a launcher and Go prepare. Every fifth has a step.
const soakScript = `rm -rf /home/alice/soak; mkdir /home/alice/soak; cd /home/alice
cat >soak.sh <<'EOF'
#!/bin/sh
cat /etc/gojail-jail; echo >/tmp/file
[ $((SLURM_ARRAY_TASK_ID %% 5)) != 0 ] || srun -Q cat /etc/gojail-jail
sleep 0.$((SLURM_ARRAY_TASK_ID %% 10))
EOF
for kind in debian other mount; do
	options=--jail=$kind
	[ $kind != mount ] || options='--jail=debian --jail-mount=/data:/mnt'
	sbatch --parsable -o soak/%%A_%%a.$kind --array=1-%d $options soak.sh
done`

// soak is the jobs of TestSoak, and what is done to them.
type soak struct {
	c       *harness.Cluster
	random  *rand.Rand
	ids     string         // of the arrays
	done    map[string]int // by the names of soakActions
	drained map[string]int // by Slurm's reason
}

func (k *soak) chooseNode() string { return harness.Nodes[k.random.IntN(len(harness.Nodes))] }

// killOne kills one of the processes that are chosen, and reports whether there was any.
func (k *soak) killOne(isChosen func(harness.Process) bool) bool {
	all := slices.DeleteFunc(k.c.Processes(), func(p harness.Process) bool { return !isChosen(p) })
	return len(all) > 0 && k.c.Root("kill", "-KILL", strconv.Itoa(all[k.random.IntN(len(all))].Pid)).Code == 0
}

// killDaemon kills a daemon, and returns when it is gone.
func (k *soak) killDaemon(t *testing.T, command string) {
	t.Helper()
	find := func() []harness.Process {
		return slices.DeleteFunc(k.c.Processes(), func(p harness.Process) bool {
			return !strings.HasPrefix(p.Command+" ", command+" ") || strings.HasPrefix(p.Status["State"], "Z")
		})
	}
	for _, p := range find() {
		k.c.Root("kill", "-KILL", strconv.Itoa(p.Pid))
	}
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(find()) == 0 }), command)
}

// soakActions report whether they met what they are for.
var soakActions = map[string]func(*testing.T, *soak) bool{
	"slurmd": func(t *testing.T, k *soak) bool {
		node := k.chooseNode()
		k.killDaemon(t, "/usr/sbin/slurmd -N "+node)
		require.NoError(t, k.c.StartSlurmd(node))
		return true
	},
	"slurmctld": func(t *testing.T, k *soak) bool {
		k.killDaemon(t, "/usr/sbin/slurmctld")
		r := k.c.Do(harness.Command{Dir: "/", Args: []string{"/usr/sbin/slurmctld"}})
		require.Zero(t, r.Code, r)
		return true
	},
	"munged": func(t *testing.T, k *soak) bool {
		stopMunge(t, k.c)
		startMunge(t, k.c)
		return true
	},
	"slurmstepd": func(_ *testing.T, k *soak) bool {
		return k.killOne(func(p harness.Process) bool { return strings.HasPrefix(p.Command, "slurmstepd: [") })
	},
	"zygote or spare": func(_ *testing.T, k *soak) bool {
		return k.killOne(func(p harness.Process) bool {
			return slices.Contains([]string{"gojail-zygote", "gojail-spare"}, p.Status["Name"])
		})
	},
	"another of gojail's": func(_ *testing.T, k *soak) bool {
		return k.killOne(func(p harness.Process) bool {
			name := p.Status["Name"]
			return strings.HasPrefix(name, "gojail-") && name != "gojail-zygote" && name != "gojail-spare"
		})
	},
	"gojail reload": func(_ *testing.T, k *soak) bool { return k.c.Gojail(k.chooseNode(), "reload").Code == 0 },
	"gojail sweep":  func(_ *testing.T, k *soak) bool { return k.c.Gojail(k.chooseNode(), "sweep").Code == 0 },
}

// countLeft returns how many jobs have not ended, and false where slurmctld does not say. It does what Slurm leaves to an
// administrator: Slurm holds a job whose launch has failed, and drains the node of a job that it begins twice, as slurmctld was killed
// before it had written that it had begun.
func (k *soak) countLeft() (left int, ok bool) {
	r := k.c.Root("squeue", "-rho", "%i %r", "-j", k.ids)
	for line := range strings.Lines(r.Stdout) {
		left++
		if id, why, _ := strings.Cut(line, " "); strings.Contains(strings.ToLower(why), "held") {
			k.c.Root("scontrol", "release", id)
		}
	}
	for line := range strings.Lines(k.c.Root("sinfo", "-hNRo", "%n|%E").Stdout) {
		node, why, _ := strings.Cut(strings.TrimSpace(line), "|")
		k.drained[why]++
		if why == "Duplicate jobid" {
			k.c.Resume(node)
		}
	}
	return left, r.Code == 0
}

func (k *soak) restartSlurmds(t *testing.T) {
	t.Helper()
	for _, node := range harness.Nodes {
		require.NoError(t, k.c.RestartSlurmd(node))
	}
}

// kill does one thing after another until few jobs are left. A job whose slurmstepd was killed keeps its processor until slurmctld has
// run for a while (BatchStartTimeout), and slurmd, which is started again, registers.
func (k *soak) kill(t *testing.T, few int) {
	t.Helper()
	names := slices.Sorted(maps.Keys(soakActions))
	for begin, n := time.Now(), 1; ; n++ {
		name := names[k.random.IntN(len(names))]
		if soakActions[name](t, k) {
			k.done[name]++
		}
		time.Sleep(time.Duration(k.random.Int64N(int64(time.Second)))) // between kills, not for something
		if n%10 == 0 {
			time.Sleep(15 * time.Second) // jobs run undisturbed
			k.restartSlurmds(t)
		}
		if n%5 != 0 {
			continue
		}
		if left, ok := k.countLeft(); ok {
			t.Logf("%4.0f s: %d jobs left; %v", time.Since(begin).Seconds(), left, k.done)
			if left <= few {
				return
			}
		}
	}
}

// waitEnd waits until all jobs have ended. One that Slurm has requeued begins two minutes later. A few are cancelled: a srun can wait for
// ever for a message that could not be sent while munged or slurmctld was away, and that nobody sends again.
func (k *soak) waitEnd(t *testing.T, jobs int) {
	t.Helper()
	var left int
	haveEnded := func() (ok bool) { left, ok = k.countLeft(); return ok && left == 0 }
	for range 10 {
		k.restartSlurmds(t)
		if harness.Poll(20*time.Second, haveEnded) { // and once more
			return
		}
	}
	t.Logf("cancelled: %s", k.c.Root("squeue", "-r").Stdout)
	assert.LessOrEqual(t, left, 1+jobs/100)
	require.Zero(t, k.c.Root("scancel", "-u", harness.Alice).Code)
	require.True(t, harness.Poll(harness.Timeout, haveEnded), "%v", k.c.Root("squeue", "-r"))
}

// TestSoak, which make test leaves out: GOJAIL_SOAK jobs while daemons and gojail's processes are killed at random. A job may fail
// then, but none runs outside its jail, all end, and nothing is left of them.
func TestSoak(t *testing.T) {
	jobs := int(harness.ReadNumber(t, "GOJAIL_SOAK", 300))
	seed := harness.ReadNumber(t, "GOJAIL_SEED", uint64(time.Now().UnixNano()))
	t.Logf("GOJAIL_SEED=%d", seed)
	config := harness.DefaultConfig
	for _, jail := range []string{"debian", "other"} {
		config += "[[jail." + jail + ".mounts]]\ndestination = \"/home\"\nsource = \"/home\"\noptions = [\"rbind\"]\n"
	}
	c := harness.Start(t, harness.Options{Plugin: true, Jails: []string{"debian", "other"}, Config: config,
		SlurmConf: map[string]string{"MaxArraySize": "100001", "MaxJobCount": "200000", "BatchStartTimeout": "2"}})
	assemble := func() []string {
		for _, node := range harness.Nodes {
			requireOutput(t, "other", c.Run(harness.Alice, "srun", "-w"+node, "--jail=other", "cat", marker))
		}
		return assembleTemplates(t, c)
	}
	before := assemble()
	k := &soak{c: c, random: rand.New(rand.NewPCG(seed, 0)), done: map[string]int{}, drained: map[string]int{}}
	r := c.Run(harness.Alice, "bash", "-c", fmt.Sprintf(soakScript, jobs/3))
	require.Zero(t, r.Code, r)
	k.ids = strings.Join(strings.Fields(r.Stdout), ",")
	time.Sleep(6 * time.Second) // slurmctld has written down after five that there are such jobs (SAVE_MAX_WAIT)
	k.kill(t, jobs/20)
	k.waitEnd(t, jobs)
	t.Logf("drained: %v", k.drained)
	t.Log(c.Run(harness.Alice, "sh", "-c", "cat /home/alice/soak/* | sort | uniq -c | sort -rn | head -40").Stdout)
	begun := 0
	for kind, jail := range map[string]string{"debian": "debian", "other": "other", "mount": "debian"} {
		r = c.Run(harness.Alice, "sh", "-c", "cat /home/alice/soak/*."+kind+" | grep -xE '[a-z]+' | sort | uniq -c")
		words := strings.Fields(r.Stdout)
		require.Len(t, words, 2, r)
		assert.Equal(t, jail, words[1], r)
		n, err := strconv.Atoi(words[0])
		require.NoError(t, err, r)
		begun += n
	}
	assert.Greater(t, begun, jobs/2)
	assert.Empty(t, c.Drained())
	assemble()
	requireNothingLeft(t, c, before)
}

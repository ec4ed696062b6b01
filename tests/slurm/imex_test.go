// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

const (
	channelDir = "/dev/nvidia-caps-imex-channels"
	// listChannels prints the channels that a process sees, such as "3 1:3 666", or "-". Each is opened.
	listChannels = `cd ` + channelDir + ` 2>/dev/null || { echo -; exit; }
set -- channel*; [ -e "$1" ] || { echo -; exit; }
echo $(stat -c '%n %t:%T %a' "$@" | sed s/channel//); for c; do head -c0 "$c" || echo "cannot open $c"; done`
)

// needIMEX skips the test where Slurm cannot give channels, or would take those of this machine.
func needIMEX(t *testing.T) {
	t.Helper()
	if harness.Version() < "24.11" {
		t.Skip("needs Slurm 24.11, which has switch/nvidia_imex")
	}
	if there, _ := filepath.Glob(channelDir + "/*"); len(there) > 0 {
		t.Skip("needs a machine without IMEX channels: slurmd removes them")
	}
}

// startIMEX starts a cluster whose Slurm gives each job a channel. The devices are those of memory, 1:N: the first two, which only
// root may open, are taken.
func startIMEX(t *testing.T, conf, files map[string]string) *harness.Cluster {
	t.Helper()
	needIMEX(t)
	t.Cleanup(func() { os.Remove(channelDir) }) // slurmd makes it, in the /dev of this machine
	options := jailed
	options.OneCPU = true
	options.Config = strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\njail_root = [\"self\", \"range\"]\n", 1)
	options.SlurmConf = maps.Clone(jailed.SlurmConf)
	maps.Copy(options.SlurmConf, map[string]string{"SwitchType": "switch/nvidia_imex",
		"SwitchParameters": "imex_dev_major=1,imex_channel_count=8", "LaunchParameters": "use_interactive_step"})
	maps.Copy(options.SlurmConf, conf)
	options.Files = maps.Clone(jailed.Files)
	maps.Copy(options.Files, files)
	c := harness.Start(t, options)
	for range 2 {
		submitScript(t, c, "sleep 1000\n", "--jail=none", "-wn2", "--output=/dev/null")
	}
	return c
}

// TestIMEXChannels: a step in a jail has the channels that Slurm gave its job, and no others, as a step without a jail has.
func TestIMEXChannels(t *testing.T) {
	c := startIMEX(t, nil, nil)
	allowRange(t, c)
	srun := func(args ...string) string {
		r := c.Do(harness.Command{User: harness.Alice, Env: []string{"LIST=" + listChannels}, Args: append([]string{"srun", "-Q", "-wn1"}, args...)})
		require.Zero(t, r.Code, r)
		return strings.TrimSpace(r.Stdout)
	}
	list := func(args ...string) string { return srun(append(args, "sh", "-c", listChannels)...) }
	first := "3 1:3 666"

	require.Equal(t, first, list("--jail=none"), "control")
	for _, args := range [][]string{{}, {"--jail-root=self"}, {"--jail-root=range"}, {"-n2", "-l", "--jail-mount=/data:/mnt"}} {
		seen := list(append([]string{"--jail=debian"}, args...)...)
		assert.Equal(t, first, uniqueLines(strings.NewReplacer("0: ", "", "1: ", "").Replace(seen)), args)
	}
	t.Run("steps of a job", func(t *testing.T) {
		for _, jails := range []string{"debian debian other none debian", "none debian none"} {
			r := c.Do(harness.Command{User: harness.Alice, Env: []string{"LIST=" + listChannels, "JAILS=" + jails}, Args: []string{"salloc", "-Q", "-wn1",
				"--no-shell", "-J", "imex"}})
			require.Zero(t, r.Code, r)
			id := strings.TrimSpace(c.Run(harness.Alice, "squeue", "-h", "-n", "imex", "-o", "%i").Stdout)
			for _, jail := range strings.Fields(jails) {
				assert.Equal(t, first, list("--jobid="+id, "--jail="+jail), "%s of %s", jail, jails)
			}
			c.Run(harness.Alice, "scancel", id)
			require.True(t, harness.Poll(harness.Timeout, func() bool { return c.NodeState("n1") == "idle" }))
		}
	})
	t.Run("steps at once", func(t *testing.T) {
		job := c.Batch(harness.Alice, "for i in 1 2 3 4; do srun -Q --overlap -n1 sh -c 'for i in 1 2 3 4 5 6 7 8; do "+
			strings.ReplaceAll(listChannels, "'", `'\''`)+"; done' & done; wait\n", "-wn1", "-n4", "--jail=debian", "--output=/home/alice/at-once")
		removeFromJail(t, c, "at-once")
		assert.Equal(t, "COMPLETED "+first, job.State+" "+uniqueLines(job.Output), job)
	})
	t.Run("batch step", func(t *testing.T) {
		script := "(" + listChannels + "); srun -Q sh -c '" + strings.ReplaceAll(listChannels, "'", `'\''`) + "'\n"
		control := c.Batch(harness.Alice, script, "-wn1", "--jail=none")
		assert.Equal(t, "COMPLETED", control.State, control)
		assert.Contains(t, control.Output, first, control)
		job := c.Batch(harness.Alice, script, "-wn1", "--jail=debian", "--output=/home/alice/batch.out")
		removeFromJail(t, c, "batch.out")
		assert.Equal(t, "COMPLETED "+control.Output, job.State+" "+job.Output, job)
	})
	t.Run("interactive step", func(t *testing.T) {
		shown := map[string]string{}
		for _, jail := range []string{"none", "debian"} {
			r := c.Do(harness.Command{User: harness.Alice, Stdin: "(" + listChannels + ") | sed 's/^/it: /'\nexit\n",
				Args: []string{"script", "-qec", "salloc -Q -n1 -wn1 --jail=" + jail, "/dev/null"}})
			for line := range strings.Lines(r.Stdout) {
				if strings.HasPrefix(line, "it: ") {
					shown[jail] += strings.TrimSpace(line)
				}
			}
			require.NotEmpty(t, shown[jail], r)
		}
		assert.Equal(t, shown["none"], shown["debian"])
	})
	t.Run("two jobs at once", func(t *testing.T) {
		other := submitScript(t, c, "srun -Q sh -c 'echo up; sleep 1000'\n", "-wn1", "--jail=debian")
		waitForLine(t, c, other, "up")
		assert.NotEqual(t, first, list("--jail=none"), "control")
		assert.Regexp(t, `^4 1:4 666`, list("--jail=debian"))
		assert.Equal(t, first, list("--overlap", "--jobid="+other, "--jail=debian"))
		assert.Equal(t, first, list("--overlap", "--jobid="+other, "--jail=other"))
		c.Run(harness.Alice, "scancel", other)
		require.True(t, harness.Poll(harness.Timeout, func() bool { return c.NodeState("n1") == "idle" }))
	})
	t.Run("of the node", func(t *testing.T) {
		stray := c.Path(channelDir + "/channel9")
		require.Zero(t, c.Root("mknod", "-m666", channelDir+"/channel9", "c", "1", "9").Code)
		defer os.Remove(stray)
		assert.Equal(t, first, list("--jail=debian"))
		configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\ndevices = [\"/dev/nvidia*\"]\n", 1))
		assert.Equal(t, first, list("--jail=debian"), "in the place of what the jail shows of the node")
	})
	t.Run("requeue", func(t *testing.T) { checkRequeuedChannel(t, c) })
	for _, node := range harness.Nodes {
		assert.NotContains(t, c.Drained(), node)
	}
}

// checkRequeuedChannel requires that a job which runs again has its new channel, and not the one of its first run.
func checkRequeuedChannel(t *testing.T, c *harness.Cluster) {
	removeFromJail(t, c, "requeued")
	id := submitScript(t, c, "srun -Q sh -c '"+strings.ReplaceAll(listChannels, "'", `'\''`)+"; echo listed'\nsleep 1000\n", "--requeue", "-wn1",
		"--jail=debian", "--open-mode=append", "--output=/home/alice/requeued")
	seen := func() string { return readFile(c, jailHome+"requeued") }
	require.True(t, harness.Poll(harness.Timeout, func() bool { return strings.Contains(seen(), "listed") }), seen)
	require.Zero(t, c.Run(harness.Alice, "scontrol", "requeue", id).Code)
	requeued := time.Now()
	require.True(t, harness.Poll(harness.Timeout, func() bool { return c.NodeState("n1") == "idle" }))
	other := submitScript(t, c, "echo up; sleep 1000\n", "-wn1", "--jail=none")
	waitForLine(t, c, other, "up")
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		if requeued.Add(2 * time.Second).Before(time.Now()) { // slurmd refuses what was submitted in the second in which the job was killed
			c.Root("scontrol", "update", "jobid="+id, "starttime=now")
		}
		return strings.Count(seen(), "listed") == 2
	}), seen)
	runs := strings.Split(seen(), "listed\n")
	assert.Equal(t, "3 1:3 666\n", runs[0])
	assert.Regexp(t, `(?m)^4 1:4 666$`, runs[1])
	assert.NotContains(t, runs[1], "1:3")
	c.Run(harness.Alice, "scancel", id, other)
	require.True(t, harness.Poll(harness.Timeout, func() bool { return c.NodeState("n1") == "idle" }))
}

// TestIMEXChannelsInNamespaces: the same where the channel is in mounts that Slurm makes for the whole job, and where the hooks are
// called in a process of their own.
func TestIMEXChannelsInNamespaces(t *testing.T) {
	needIMEX(t)
	for _, f := range features {
		if f.name != "contain_spank" && !f.private || !f.isThere(t) {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			c := startIMEX(t, f.conf, f.files)
			shown := map[string]string{}
			for _, jail := range []string{"none", "debian"} {
				r := c.Run(harness.Alice, "srun", "-Q", "-wn1", "--jail="+jail, "sh", "-c", listChannels)
				require.Zero(t, r.Code, r)
				job := c.Batch(harness.Alice, listChannels, "-wn1", "--jail="+jail, "--output=/home/alice/channels-"+jail)
				shown[jail] = fmt.Sprintf("%s|%s", strings.TrimSpace(r.Stdout), strings.TrimSpace(job.Output))
			}
			assert.Regexp(t, `^3 1:3 666\|`, shown["none"], "control")
			assert.Equal(t, shown["none"], shown["debian"])
		})
	}
}

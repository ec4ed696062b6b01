// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gojail/gojail/tests/harness"
)

// TestHetJob requires that each component of a heterogeneous job or step gets what it names, or that the command is refused: Slurm has one value
// of a plugin's option for all of them.
func TestHetJob(t *testing.T) {
	options := jailed
	options.SlurmConf = map[string]string{"SchedulerParameters": "bf_interval=1,batch_sched_delay=0"} // only backfill starts such jobs
	c := harness.Start(t, options)
	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.other]\n", "[jail.other]\njail_root = [\"self\"]\n", 1))
	const first, second, env = 0, 1, 2
	for _, row := range []struct {
		set  [3]string // options of the first component, of the second, and a variable
		want string    // what both run in, or why the command is refused
	}{
		{set: [3]string{"--jail=debian", "--jail=debian"}, want: "debian"},
		{set: [3]string{"--jail=other --jail-root", "--jail=other --jail-root"}, want: "other 0"},
		{set: [3]string{"--jail=debian --jail-mount=/data:/mnt", "--jail=debian --jail-mount=/data:/mnt"}, want: "debian"},
		{set: [3]string{"--jail=none", "--jail=none"}, want: "node"},
		{set: [3]string{"", ""}, want: "node"},
		{set: [3]string{"", "", "SLURM_JAIL=other"}, want: "other"},
		{set: [3]string{"--jail=debian", "--jail=debian", "SLURM_JAIL=other"}, want: "debian"},
		{set: [3]string{"--jail=other", "", "SLURM_JAIL=other"}, want: "other"},
		{set: [3]string{"", "--jail=other", "SLURM_JAIL=other"}, want: "other"},
		{set: [3]string{"--jail=debian", "--jail=other"}, want: `--jail: a component of a heterogeneous job has "debian", another "other"`},
		{set: [3]string{"--jail=none", "--jail=other"}, want: `--jail: a component of a heterogeneous job has "none", another "other"`},
		{set: [3]string{"--jail=debian", ""}, want: `--jail: a component of a heterogeneous job has "debian", another no value`},
		{set: [3]string{"--jail=none", ""}, want: `--jail: a component of a heterogeneous job has "none", another no value`},
		{set: [3]string{"", "--jail=debian"}, want: `--jail: a component of a heterogeneous job has no value, another "debian"`},
		{set: [3]string{"--jail=debian", "", "SLURM_JAIL=other"}, want: `--jail: a component of a heterogeneous job has "debian", another "other"`},
		{set: [3]string{"", "--jail=debian", "SLURM_JAIL=other"}, want: `--jail: a component of a heterogeneous job has "other", another "debian"`},
		{set: [3]string{"--jail=debian --jail-mount=/data:/mnt", "--jail=debian"},
			want: `--jail-mount: a component of a heterogeneous job has "/data:/mnt", another no value`},
		{set: [3]string{"--jail=debian --jail-mount=/data:/mnt", "--jail=debian --jail-mount=/data:/opt"},
			want: `--jail-mount: a component of a heterogeneous job has "/data:/mnt", another "/data:/opt"`},
		{set: [3]string{"--jail=debian", "--jail=debian", "SLURM_JAIL_NET=ai"}, want: "--jail-net=ai"},
		{set: [3]string{"--jail-net=none", "--jail-net=ai"}, want: `--jail-net: a component of a heterogeneous job has "none", another "ai"`},
		{set: [3]string{"--jail=other --jail-root", "--jail=other"}, want: `--jail-root: a component of a heterogeneous job has "any", another no value`},
		{set: [3]string{"--jail=other --jail-root=none", "--jail=other --jail-root=self"}, want: `--jail-root: a component of a heterogeneous job has "none", another "self"`},
	} {
		refused := strings.HasPrefix(row.want, "--")
		where := []string{"sh", "-c", "echo $(cat /etc/gojail-jail 2>/dev/null || echo node) $(id -u | grep -x 0)"}
		commands := []string{"salloc", "srun", "sbatch", "#SBATCH hetjob"}
		if strings.Contains(row.set[first], "--jail-root") && !refused {
			commands = commands[:2] // the script is root in the jail, for which Slurm starts no steps
		}
		for _, how := range commands {
			t.Run(fmt.Sprintf("%s %q", how, row.set), func(t *testing.T) {
				a := append([]string{"-wn1", "-n1"}, strings.Fields(row.set[first])...)
				b := append([]string{"-wn2", "-n1"}, strings.Fields(row.set[second])...)
				command := harness.Command{User: harness.Alice, Env: strings.Fields(row.set[env])}
				both := slices.Concat([]string{"srun", "-Q", "--het-group=0,1"}, where)
				script := "#!/bin/sh\n#SBATCH " + strings.Join(a, " ") + "\n#SBATCH hetjob\n#SBATCH " + strings.Join(b, " ") + "\n"
				var said string
				switch how {
				case "salloc":
					command.Args = slices.Concat([]string{"salloc"}, a, []string{":"}, b, both)
				case "srun":
					command.Args = slices.Concat([]string{"srun", "-Q"}, a, where, []string{":"}, b, where)
				case "sbatch":
					command.Args = slices.Concat([]string{"sbatch", "--parsable", "--output=/home/alice/het"}, a, []string{":"}, b)
					command.Stdin = "#!/bin/sh\n"
				default:
					command.Args = []string{"sbatch", "--parsable", "--output=/home/alice/het"}
					command.Stdin = script
				}
				if how == "sbatch" || how == "#SBATCH hetjob" {
					command.Stdin += "srun -Q --het-group=0,1 sh -c '" + where[2] + "'\n"
				}
				r := c.Do(command)
				said = r.Stdout
				if command.Stdin != "" {
					if r.Code == 0 && c.WaitJob(harness.Job{ID: strings.TrimSpace(r.Stdout)}).State != "COMPLETED" { // sbatch --wait looks after 2, 10 and 42 seconds
						r.Code = 1
					}
					said, _ = c.ReadAnywhere("/home/alice/het")
					c.Root("sh", "-c", "rm -f /home/alice/het /srv/jails/*/home/alice/het")
				}
				if refused {
					assert.NotZero(t, r.Code, r)
					assert.Contains(t, r.Stderr+said, "gojail: "+row.want)
					assert.NotRegexp(t, "(?m)^(debian|other|node)", said)
					return
				}
				assert.Zero(t, r.Code, r)
				assert.Equal(t, row.want+"\n"+row.want+"\n", said, r)
			})
		}
	}
	t.Run("each step its own", func(t *testing.T) {
		r := c.Run(harness.Alice, "salloc", "-Q", "--jail=debian", "-wn1", "-n1", ":", "--jail=debian", "-wn2", "-n1", "sh", "-c",
			"srun -Q --het-group=0 cat "+marker+"; srun -Q --het-group=1 --jail=other cat "+marker+"; srun -Q --het-group=0,1 --jail=other cat "+marker+
				"; srun -Q --het-group=0 --jail=debian cat "+marker+" : --het-group=1 --jail=other cat "+marker)
		assert.Equal(t, "debian\nother\nother\nother\n", r.Stdout, r)
		assert.Contains(t, r.Stderr, `gojail: --jail: a component of a heterogeneous job has "debian", another "other"`)
	})
}

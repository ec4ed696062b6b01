// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// lookAtCgroups prints "own" where the task's cgroups are at the paths that the kernel tells, "other" for each job's
// that is not its own, and "writable" where it can make one. The freezer of v1 has nothing that a program reads.
const lookAtCgroups = `own=; job=
while IFS=: read -r id controllers path; do
	case $controllers:$path in freezer:*) continue;; *:*/step_*) ;; *) continue;; esac
	job=${path%/step_*}; job=${job##*/}
	dir=/sys/fs/cgroup/${controllers#name=}$path
	if grep -qx $$ $dir/cgroup.procs; then own=own; else echo "not in $dir"; fi
done </proc/self/cgroup
echo $own
for step in $(find /sys/fs/cgroup -type d -name 'step_*'); do
	of=${step%/step_*}
	[ ${of##*/} = "$job" ] || echo other
	mkdir $step/made 2>/dev/null && echo writable
done | sort -u
exit 0`

// TestOwnCgroups: a jail shows the cgroups that Slurm made for the job, where programs look for them, and no others.
func TestOwnCgroups(t *testing.T) {
	options := jailed
	options.Constrain = true
	c := harness.Start(t, options)
	other, stop := context.WithCancel(context.Background())
	victim := c.Exec(other, harness.Command{User: harness.Bob, Args: []string{"srun", "-wn1", "sleep", "4322"}})
	require.NoError(t, victim.Start())
	defer func() { stop(); victim.Wait() }()
	require.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("sleep 4322")) > 0 }))

	look := func(user, jail string) string {
		r := c.Run(user, "srun", "-Q", "-wn1", "--jail="+jail, "sh", "-c", lookAtCgroups)
		require.Zero(t, r.Code, r)
		return strings.Join(strings.Fields(r.Stdout), " ")
	}
	assert.Contains(t, look(harness.Alice, "none"), "own other", "control") // and with v1 hers are writable
	for _, user := range []string{harness.Alice, "root"} {
		assert.Equal(t, "own", look(user, "debian"), user)
	}
	// Slurm removes a job's cgroup with its last step, and makes another at the same path for the next one.
	steps := c.Do(harness.Command{User: harness.Alice, Env: []string{"LOOK=" + lookAtCgroups}, Args: []string{"salloc", "-Q", "-wn1", "sh", "-c",
		`for step in 1 2 3; do srun -Q --jail=debian sh -c "$LOOK"; done; srun -Q --jail=debian sh -c "$LOOK" & srun -Q --overlap --jail=debian sh -c "$LOOK"; wait`}})
	assert.Equal(t, strings.Repeat("own ", 5), strings.ReplaceAll(steps.Stdout, "\n", " "), steps)

	submit := c.Do(harness.Command{User: harness.Alice, Stdin: "#!/bin/sh\nsleep 4323\n",
		Args: []string{"sbatch", "--parsable", "-wn1", "--output=/dev/null", "--jail=debian"}})
	job := strings.TrimSpace(submit.Stdout)
	assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(c.Find("sleep 4323")) > 0 }), submit)
	assert.Regexp(t, `"destination": "/sys/fs/cgroup/[^"]+",\s+"type": "bind"`, c.Gojail("n1", "spec", "--job", job).Stdout)
	c.Root("scancel", job)

	configure(t, c, strings.Replace(harness.DefaultConfig, "[jail.debian]\n", "[jail.debian]\ncgroups = \"node\"\n", 1))
	assert.Equal(t, "own other", look(harness.Alice, "debian"), "where the site wants the node's")
}

// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wholeStep plays a step as Slurm does, and prints after each hook where slurmstepd is. The task is forked before task_post_fork.
const wholeStep = "init,options,init_post_opt,place,make,as_user,place,task,task_post_fork,place,task_exit,place,exit,place,counted"

var (
	placePattern   = regexp.MustCompile(`(?m)^at (.*)$`)
	countedPattern = regexp.MustCompile(`(?m)^counted (\d+)$`)
)

// TestEachCallFails lets each call fail with which the plugin moves to another namespace or identity, once or from then on. Root must
// never be left in a jail, whose owner chooses the PAM and NSS modules that Slurm loads next, and no task may run outside its jail.
func TestEachCallFails(t *testing.T) {
	requireRoot(t)
	h := buildHost(t)
	h.makeJail(t)
	h.addJail(t, "other")
	h.runCalls(t, "init,options,init_post_opt,user_init,exit", "HOST_STEP=1") // the zygote
	spool := filepath.Join(h.dir, "spool")
	end := func() { h.runCalls(t, "init,job_epilog", "HOST_CONTEXT=script") }
	begin := func() { h.runCalls(t, "init,options,init_post_opt,user_init,exit", "HOST_STEP=1") }
	defer end()
	for _, row := range []struct {
		name   string
		before func() // each time
		env    []string
	}{
		{"a job's first step", end, []string{"HOST_STEP=0"}},
		{"a later step", func() {}, []string{"HOST_STEP=0"}},
		{"a step with PMIx", func() {}, []string{"HOST_STEP=2", "HOST_MAKE=" + spool + "/pmix.7.2;/tmp/spmix_appdir_5001_7.2"}},
		{"a batch script in a sandbox that is there", func() { os.RemoveAll(filepath.Join(spool, "x")) },
			[]string{"HOST_STEP=4294967291", "HOST_SCRIPT=" + spool + "/job00007/slurm_script"}},
		{"a second jail of the job", func() { end(); begin() }, []string{"HOST_STEP=3", "HOST_JAIL=other"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.before()
			out := h.runCalls(t, wholeStep, row.env...)
			require.Contains(t, out, "marker jail", "control: no call fails")
			// Up to 23.02 slurmstepd is in the stage while it looks for task epilogs.
			require.Regexp(t, "^stage home as user 5001 home (stage|home) home home$", placesOf(out), out)
			count, err := strconv.Atoi(countedPattern.FindStringSubmatch(out)[1])
			require.NoError(t, err)
			require.Greater(t, count, 5)
			for n := 1; n <= count; n++ {
				for _, all := range []string{"", "HOST_FAIL_ALL=1"} {
					row.before()
					// The check for leaks makes a thread, which a process cannot do that is kept from leaving the job's PID namespace (forks.h).
					out := h.runCalls(t, wholeStep, append([]string{"ASAN_OPTIONS=detect_leaks=0", fmt.Sprintf("HOST_FAIL=%d", n), all}, row.env...)...)
					checkPlaces(t, out, all != "")
				}
			}
		})
	}
}

// placesOf returns where slurmstepd was after each hook.
func placesOf(out string) string {
	var all []string
	for _, match := range placePattern.FindAllStringSubmatch(out, -1) {
		all = append(all, match[1])
	}
	return strings.Join(all, " ")
}

// checkPlaces verifies a step in which calls failed. The stage is no jail: root runs there by design, between init_post_opt and
// user_init. A process that cannot leave it stays there with a fault.
func checkPlaces(t *testing.T, out string, always bool) {
	t.Helper()
	places := placesOf(out)
	assert.NotContains(t, out, "OUTSIDE")
	assert.NotContains(t, places, "JAIL", out)
	assert.NotContains(t, places, "CHROOT", out)
	assert.NotContains(t, places, "mask", out)
	if !always {
		assert.True(t, strings.HasSuffix(places, " home") || places == "home", "one failed call: the last hook goes home\n%s", out)
	}
	if strings.Contains(places, "stage as user 5001") || strings.HasSuffix(places, "stage") {
		assert.Contains(t, out, "cannot leave the stage", out)
	}
	if strings.Contains(out, "marker jail") {
		assert.Contains(t, out, "task_init_privileged 0", out)
	} else {
		assert.Contains(t, out, "error: gojail: ", "a task that does not run says why\n%s", out)
	}
}

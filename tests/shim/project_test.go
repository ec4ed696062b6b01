// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// buildQuotaProgram builds a program that includes spank/common/quota.c, and returns its path.
func buildQuotaProgram(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	out, err := exec.Command("gcc", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
		"-I../../spank", "-I../../include", "-o", program, "testdata/"+name+".c", "../../spank/common/fault.c", "../../spank/common/printable.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// projectsOf returns the quota's project of each job, as the C function finds it.
func projectsOf(t *testing.T, jobs ...string) (projects []uint64) {
	t.Helper()
	out, err := exec.Command(buildQuotaProgram(t, "project"), jobs...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for word := range strings.FieldsSeq(string(out)) {
		project, err := strconv.ParseUint(word, 0, 32)
		require.NoError(t, err)
		projects = append(projects, project)
	}
	require.Len(t, projects, len(jobs))
	return projects
}

// TestProjectOfAFederationsJob: a node of a federation has jobs of all its clusters, and each its own limit.
func TestProjectOfAFederationsJob(t *testing.T) {
	jobs := []string{"run-17", "run-4194304", "17"}
	for cluster := range uint32(32) { // 0: in no federation
		for _, number := range []uint32{1, 18, 0x3ff0000} { // the last that Slurm gives
			jobs = append(jobs, fmt.Sprint(cluster<<26|number))
		}
	}
	projects := projectsOf(t, jobs...)
	assert.Equal(t, []uint64{0x40000011, 0x40400000, 0x80000011}, projects[:3])
	assert.Equal(t, []uint64{0x60001389}, projectsOf(t, "login-5001"))
	whose := map[uint64]string{}
	for i, project := range projects[2:] {
		job := jobs[i+2]
		assert.Empty(t, whose[project], "has the project of job %s", job)
		assert.Greater(t, project, projects[1], "job %s: those below are others'", job)
		whose[project] = job
	}
}

// TestForgetQuotaOfANewJob: a job may come with the number of one that ended between the look at what that has and the removal of its
// limit. See TestForgetUnusedQuotasOfANewJob in internal/quota.
func TestForgetQuotaOfANewJob(t *testing.T) {
	program := buildQuotaProgram(t, "forget_quota")
	for args, want := range map[[2]string]string{
		{"0", "0"}:  "0 0\n",
		{"1", "0"}:  "1024 16384\n",
		{"1", "77"}: "77 0\n", // it found none, and has set its own
	} {
		out, err := exec.Command(program, args[:]...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Equal(t, want, string(out), "%v", args)
	}
}

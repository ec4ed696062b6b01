// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// Lists of --jail-mount after which FNV-1a is what it is before them, so that the sandbox has the
// name of one without mounts (spank/common/sandbox.c, sandbox_name). Others can be found within
// seconds by reduction of the lattice of the powers of FNV's prime modulo 2^64.
const (
	unseenMnt = "/data/x341*9^m\xe99)\xda=//([')()\xe9\xdex]/h)\xf5+:/mnt"
	unseenEtc = "/data/x22k[W\xd8'.-omnZ\xfe+i9z;\xeb7*7Yjo\xe9':/./etc"
)

// TestListWithTheHashOfAnother requires that a step does not enter a sandbox that was made for other mounts,
// and that Slurm's own files are never looked up at the destinations of those mounts in the jail.
func TestListWithTheHashOfAnother(t *testing.T) {
	s := sharedSite(t)
	r := s.Run(harness.Alice, "salloc", "--no-shell", "-wn1", "-n1")
	require.Zero(t, r.Code, r)
	_, id, _ := strings.Cut(strings.TrimSpace(r.Stderr), "job allocation ")
	id = strings.Fields(id)[0]
	t.Cleanup(func() { s.Run(harness.Alice, "scancel", id) })

	step := slices.Clip([]string{"--jobid=" + id, "--jail-root=self"})
	r = s.runStepWithFiles("closed", append(step, "true")...)
	require.Zero(t, r.Code, r)
	for _, list := range []string{unseenMnt, unseenEtc} {
		hash := fnv.New64a()
		hash.Write([]byte(list))
		assert.FileExists(t, s.Path(filepath.Join("/run/gojail/n1/jobs", id, fmt.Sprintf("closed+%016x", hash.Sum64()&^7|4))), "control: it is its name")
	}
	r = s.runStepWithFiles("closed", append(step, "--jail-mount="+unseenMnt, "echo", "ran")...)
	assert.NotZero(t, r.Code, r)
	assert.NotContains(t, r.Stdout, "ran")
	assert.Contains(t, r.Stderr, "gojail: another sandbox of this job has the same hash; change --jail-mount", r)

	etc := slices.Clip(append(step, "--jail-mount="+unseenEtc))
	r = s.runStepWithFiles("closed", append(etc, "echo", "ran")...)
	assert.NotZero(t, r.Code, r)
	assert.NotContains(t, r.Stdout, "ran")
	assert.Contains(t, r.Stderr, "gojail: another sandbox of this job has the same hash", r)
	r = s.runStepWithFiles("closed", append(etc, "--input="+s.linkForSlurmstepd(t, "/etc/gojail-jail"), "cat")...)
	assert.NotContains(t, r.Stdout, "closed", "slurmstepd found the jail's own /etc: %s", r)

	r = s.runStepWithFiles("closed", append(step, "cat", "/etc/gojail-jail")...)
	assert.Equal(t, "closed\n", r.Stdout, r)
}

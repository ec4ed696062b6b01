// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// pmixPath leads the program to libpmix, which lies where only Slurm's plugin looks.
var pmixPath = "LD_LIBRARY_PATH=" + harness.LibraryDir + "/pmix2/lib"

// TestPMIx: tasks in a jail meet through Slurm's PMIx server, on both nodes and
// in one step after another, and in a batch job, too; its directory is in the jail as long as
// the step. The jail has no libpmix of its own: the node's is brought along.
func TestPMIx(t *testing.T) {
	c := harness.Start(t, jailed)
	if !strings.Contains(c.Run(harness.Alice, "srun", "--mpi=list").String(), "pmix") {
		t.Skip("needs Slurm's plugin mpi/pmix, which this Slurm was built without")
	}
	program := filepath.Join(t.TempDir(), "pmix")
	out, err := exec.Command("gcc", "-Wall", "-Werror", "-I"+harness.LibraryDir+"/pmix2/include", "-o", program, "testdata/pmix.c", "-ldl").CombinedOutput()
	require.NoError(t, err, string(out))
	text, err := os.ReadFile(program)
	require.NoError(t, err)
	replaceFile(t, c.Path("/srv/jails/debian/home/alice/pmix"), string(text))
	require.NoError(t, os.Chmod(c.Path("/srv/jails/debian/home/alice/pmix"), 0o755))
	replaceFile(t, c.Path("/home/alice/pmix"), string(text))
	require.NoError(t, os.Chmod(c.Path("/home/alice/pmix"), 0o755))
	// A plugin that was built with PMIx 4 makes PMIx 5 complain without a jail, too.
	plain := c.Run(harness.Alice, "srun", "-wn1", "--mpi=pmix", "--jail=none", "env", pmixPath, "/home/alice/pmix")
	require.Zero(t, plain.Code, plain)
	for range 2 {
		r := c.Run(harness.Alice, "srun", "-N2", "-n4", "--mpi=pmix", "--jail=debian", "env", pmixPath, "/home/alice/pmix")
		require.Zero(t, r.Code, r)
		if !strings.Contains(plain.Stderr, "PMIX") {
			assert.NotContains(t, r.Stderr, "PMIX", "what it prints where it does without its files")
		}
		ranks := strings.Split(strings.TrimSpace(r.Stdout), "\n")
		slices.Sort(ranks)
		assert.Equal(t, []string{"rank 0 of 4", "rank 1 of 4", "rank 2 of 4", "rank 3 of 4"}, ranks, r)
	}
	job := c.Batch(harness.Alice, "srun --mpi=pmix -n1 cat "+marker, "--jail=debian", "-n2", "--output=/home/alice/nested.out")
	assert.Equal(t, "COMPLETED debian\n", job.State+" "+job.Output, job)
	job = c.Batch(harness.Alice, "#!/bin/sh\nfor i in 1 2; do srun --mpi=pmix env "+pmixPath+" /home/alice/pmix; done\n"+
		"srun ls -A /var/spool/slurmd/n1\n", "--jail=debian", "-wn1", "-n2", "--chdir=/tmp", "--output=/home/alice/pmix.out")
	assert.Equal(t, "COMPLETED", job.State, "%v", job)
	text, err = os.ReadFile(c.Path("/srv/jails/debian/home/alice/pmix.out"))
	require.NoError(t, err)
	assert.Equal(t, 4, strings.Count(string(text), "rank "), string(text))
	assert.NotContains(t, string(text), "pmix.", "the directories of steps that are over")
	requireNoPMIxDirectory(t, c)
	r := c.Run(harness.Alice, "srun", "-N2", "--mpi=pmi2", "--jail=debian", "cat", marker)
	requireOutput(t, "debian\ndebian", r)
}

// TestCrayMPI: what Slurm writes of a step for Cray's MPI is in the jail, where nobody can add links that root would follow at the end of
// the step, and gone after the step.
func TestCrayMPI(t *testing.T) {
	c := sharedCluster(t)
	if !strings.Contains(c.Run(harness.Alice, "srun", "--mpi=list").String(), "cray_shasta") {
		t.Skip("needs Slurm's plugin mpi/cray_shasta, which this Slurm was built without")
	}
	const look = `cd "$PALS_SPOOL_DIR" && stat -c '%n %a %U' . apinfo && [ "$PALS_APINFO" -ef apinfo ] && od -An -tx1 apinfo`
	shown := map[string]string{}
	for _, jail := range []string{"none", "debian"} {
		r := c.Run(harness.Alice, "srun", "-wn1", "-n2", "--mpi=cray_shasta", "--jail="+jail, "sh", "-c", look)
		require.Zero(t, r.Code, r)
		shown[jail] = uniqueLines(r.Stdout)
	}
	assert.Contains(t, shown["none"], "apinfo 600 alice")
	assert.Equal(t, shown["none"], shown["debian"])
	r := c.Run(harness.Alice, "srun", "-wn1", "--mpi=cray_shasta", "--jail=debian", "sh", "-c", `ln -s /home "$PALS_SPOOL_DIR/x"`)
	assert.Contains(t, r.Stderr, "Read-only file system", r)
	job := c.Batch(harness.Alice, "for i in 1 2; do srun --mpi=cray_shasta sh -c '[ -r $PALS_APINFO ] && echo read'; done\n"+
		"srun sh -c 'ls -A /var/spool/slurmd/n1 /var/spool/slurmd/n1/mpi_cray_shasta'\n", "-wn1", "--jail=debian", "--output=/home/alice/cray.out")
	removeFromJail(t, c, "cray.out")
	assert.Equal(t, "COMPLETED", job.State, job)
	assert.Equal(t, 2, strings.Count(job.Output, "read\n"), job)
	assert.NotRegexp(t, `(?m)^`+job.ID+`\.`, job.Output, "the directories of steps that are over")
	left, err := filepath.Glob(c.Path("/var/spool/slurmd/n1/mpi_cray_shasta/*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// requireNoPMIxDirectory requires that Slurm's directory for PMIx clients is gone after the step from the
// job's /tmp and from the node's, with its files, and without an error in slurmd's log.
func requireNoPMIxDirectory(t *testing.T, c *harness.Cluster) {
	begin := len(c.Log("n1"))
	job := c.Batch(harness.Alice, `srun --mpi=pmix sh -c 'cd /tmp/spmix_appdir_*_$SLURM_JOB_ID.0 && mkdir -p a/b && touch a/b/c .d && ln -s /home/alice e && echo used'
srun --mpi=pmix sleep 600 & until scancel $SLURM_JOB_ID.1; do sleep .5; done; wait
srun --mpi=pmix true
for i in $(seq 100); do ls -d /tmp/spmix_* >/dev/null 2>&1 || break; sleep .1; done
echo left: $(ls -A /tmp); ls /home/alice/pmix`, "--jail=debian", "-wn1", "--output=/home/alice/left.out")
	assert.Equal(t, "COMPLETED", job.State, "%v", job)
	text, err := os.ReadFile(c.Path("/srv/jails/debian/home/alice/left.out"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "used\n")
	assert.Contains(t, string(text), "left:\n/home/alice/pmix\n")
	require.True(t, c.WaitIdle())
	assert.NotContains(t, c.Log("n1")[begin:], "spmix_appdir")
	left, err := filepath.Glob(c.Path("/tmp/spmix_appdir*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

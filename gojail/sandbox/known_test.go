// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state/statetest"
	"github.com/gojail/gojail/internal/nstest"
)

const noController = "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1"

// TestSweepAfterABoot: what a job left before the boot goes, whatever slurmctld says of the job: it may not have noticed, or the job
// is requeued.
func TestSweepAfterABoot(t *testing.T) {
	nstest.NoLeaks(t)
	const running, pending, silent, locked, allocated, begun, stepd = "4000000001", "4000000002", "4000000003", "4000000004", "4000000005", "4000000006", "4000000007"
	w, dir := newSweep(t, map[string]string{
		running: "echo 4000000001 RUNNING", pending: "echo 4000000002 PENDING", silent: noController, locked: noController,
		allocated: "echo 4000000005 RUNNING", begun: "echo 4000000006 RUNNING", stepd: noController,
	})
	for _, job := range []string{running, pending, silent, locked, allocated, begun, stepd} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "scratch/jobs", job, "tmp/file"), 0o700))
	}
	statetest.AddRecord(t, w.state, "jobs/"+locked+"/"+contract.LockFile, "") // left by a sweep that was killed
	statetest.AddRecord(t, w.state, contract.AllocatedDir+"/"+allocated, "")
	statetest.AddRecord(t, w.state, "jobs/"+begun+"/"+contract.OwnerFile, "5001\n")
	step, err := net.Listen("unix", dir+"/spool/n1_"+stepd+".0")
	require.NoError(t, err)
	defer step.Close()

	alive := func(job string) bool {
		why, err := w.findReasonToKeep(job, w.isKnown(job))
		require.NoError(t, err)
		return why != ""
	}
	for job, want := range map[string]bool{running: false, pending: false, silent: false, locked: false, allocated: true, begun: true, stepd: true} {
		assert.Equal(t, want, alive(job), job)
	}
	report, err := w.run()
	require.NoError(t, err)
	assert.Equal(t, []string{running, pending, silent, locked}, report.Removed)
	assert.Equal(t, []string{"job 4000000005: it is RUNNING", "job 4000000006: it is RUNNING", "job 4000000007: its step 0 runs on this node"}, report.Kept)
	for _, job := range report.Removed {
		assert.NoDirExists(t, filepath.Join(dir, "scratch/jobs", job))
		assert.NoDirExists(t, w.state.JobDir(job))
	}
	for _, job := range []string{allocated, begun, stepd} {
		assert.DirExists(t, filepath.Join(dir, "scratch/jobs", job, "tmp/file"))
	}
	assert.Equal(t, []string{allocated}, w.state.Allocated())
}

// TestSweepAfterABootLooksAgain: a job of before the boot begins anew before the sweep has its lock, and its step has ended by then.
func TestSweepAfterABootLooksAgain(t *testing.T) {
	w, dir := newSweep(t, nil)
	w.addJob(t, "4000000001")
	var back *inUseError
	require.ErrorAs(t, w.tearDown("4000000001", false), &back)
	assert.Equal(t, "it has begun here", back.why)
	assert.FileExists(t, w.state.JobDir("4000000001")+"/small")
	assert.DirExists(t, dir+"/scratch/jobs/4000000001/tmp")
}

// TestSweepOfSharedScratch: on a file system of the network the files may be another node's.
func TestSweepOfSharedScratch(t *testing.T) {
	w, dir := newSweep(t, map[string]string{"4000000001": "echo 4000000001 RUNNING"})
	require.NoError(t, os.MkdirAll(dir+"/scratch/jobs/4000000001/tmp", 0o700))
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &st))
	before := networkTypes
	t.Cleanup(func() { networkTypes = before })
	networkTypes = append(slices.Clone(before), int64(st.Type)) // FAKE: no file server is here
	report, err := w.run()
	require.NoError(t, err)
	assert.Equal(t, []string{"job 4000000001: it is RUNNING"}, report.Kept)
	assert.DirExists(t, dir+"/scratch/jobs/4000000001/tmp")
}

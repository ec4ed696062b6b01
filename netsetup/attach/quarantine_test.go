// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/link"
)

// newStubbornNode returns a node whose VF 0 of pf0 refuses to change its VLAN until the
// error is removed.
func newStubbornNode(t *testing.T, failure *error) *node {
	n := newNode(t, setup{cards: 2, policy: "vlan = 7"})
	set, pf := n.site.hardware.setVF, pfIndex(t, n, 0)
	n.site.hardware.setVF = func(ns *link.Namespace, index, vf int, want link.VFKnobs) error {
		if index == pf && vf == 0 && want.VLAN != nil && want.VLAN.ID == 0 && *failure != nil {
			return *failure
		}
		return set(ns, index, vf, want)
	}
	return n
}

func TestAVFThatCannotBeResetIsInQuarantine(t *testing.T) {
	failure := errors.New("the card hangs")
	n := newStubbornNode(t, &failure)
	job := newJobSpace(t)
	before, empty := n.takeSnapshot(), readSpace(t, job)
	_, err := n.attach(job)
	require.NoError(t, err)
	err = Release(t.Context(), n.site, "4711")
	require.ErrorContains(t, err, "rail rail0 (VF 0 of pf0, 0000:80:01.0) is in quarantine: undo \"knobs\": the card hangs; `gojail sweep` tries again")
	assert.NotContains(t, err.Error(), "\n")
	requireSame(t, empty, readSpace(t, job))
	held, err := ListHeld(n.site.State)
	require.NoError(t, err)
	require.Len(t, held, 1)
	assert.Equal(t, [...]string{newCard(0).VFAddress(0), "4711", "rail0", "after job 4711: undo \"knobs\": the card hangs"},
		[...]string{held[0].PCI, held[0].Job, held[0].Rail, held[0].Quarantined})
	assert.True(t, HasAnything(n.site.State, "4711"), "the ends of later jobs try again")
	assert.False(t, HasAnything(n.site.State, "4712"))

	got, err := Attach(t.Context(), n.site, Job{ID: "4712", Netns: job.FD()})
	require.NoError(t, err, "others go on")
	assert.Equal(t, newCard(0).VFAddress(1), got.Rails[0].PCI)
	swept, err := Sweep(t.Context(), n.site, func(job string) bool { return job == "4712" })
	require.NoError(t, err)
	assert.Len(t, swept.Problems, 1)
	assert.Len(t, swept.Leftovers, 3)
	require.NoError(t, Release(t.Context(), n.site, "4712"))

	failure = nil
	swept, err = Sweep(t.Context(), n.site, isNeverAlive)
	require.NoError(t, err)
	assert.Empty(t, swept.Problems)
	assert.Empty(t, swept.Leftovers)
	requireSame(t, before, n.takeSnapshot())
}

// TestTheSameJobGoesOnWithoutTheQuarantinedVF checks that Sweep tries that VF again while
// the job is alive, and does not change the job's own VF.
func TestTheSameJobGoesOnWithoutTheQuarantinedVF(t *testing.T) {
	failure := errors.New("the card hangs")
	n := newStubbornNode(t, &failure)
	before := n.takeSnapshot()
	_, err := n.attach(newJobSpace(t))
	require.NoError(t, err)
	second := newJobSpace(t)
	got, err := n.attach(second)
	require.NoError(t, err)
	assert.Equal(t, newCard(0).VFAddress(1), got.Rails[0].PCI)
	failure = nil
	swept, err := Sweep(t.Context(), n.site, func(string) bool { return true })
	require.NoError(t, err)
	assert.Empty(t, swept.Problems)
	assert.Len(t, swept.Leftovers, 2)
	assert.Contains(t, readSpace(t, second), "link net1")
	n.release()
	requireSame(t, before, n.takeSnapshot())
}

func TestLift(t *testing.T) {
	failure := errors.New("the card hangs")
	n := newStubbornNode(t, &failure)
	_, err := n.attach(newJobSpace(t))
	require.NoError(t, err)
	require.Error(t, Release(t.Context(), n.site, "4711"))
	pci := newCard(0).VFAddress(0)
	lift := func(state, pci string) error { return Lift(t.Context(), state, pci, func(string) {}) }

	// Nobody may be restoring the VF meanwhile, as a sweep does under the job's lock.
	lock, err := store(n.site.State).lockJob(t.Context(), "4711")
	require.NoError(t, err)
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var waits string
	require.ErrorContains(t, Lift(soon, n.site.State, pci, func(path string) { waits = path }), "the lock of job 4711")
	assert.Equal(t, n.site.State+"/jobs.lock", waits)
	lock.Close()

	require.NoError(t, lift(n.site.State, pci))
	assert.ErrorContains(t, lift(n.site.State, pci), "is not in quarantine")
	assert.ErrorContains(t, lift(n.site.State+"/none", pci), "is not in quarantine")
	assert.ErrorContains(t, lift(n.site.State, "../../etc/passwd"), "is not a PCI address")
	held, err := ListHeld(n.site.State)
	require.NoError(t, err)
	assert.Empty(t, held)
}

// TestNameTaken gives the VF's name to another interface.
func TestNameTaken(t *testing.T) {
	n := newNode(t, setup{})
	job := newJobSpace(t)
	before := n.takeSnapshot()
	_, err := n.attach(job)
	require.NoError(t, err)
	runShell(t, n.host, "ip link add pf0v0 type bridge")
	err = Release(t.Context(), n.site, "4711")
	require.ErrorIs(t, err, link.ErrNameTaken)
	runShell(t, n.host, "ip link show gj000080010; ip link del pf0v0")
	swept, err := Sweep(t.Context(), n.site, isNeverAlive)
	require.NoError(t, err)
	assert.Empty(t, swept.Problems)
	requireSame(t, before, n.takeSnapshot())
}

func TestDamagedJournals(t *testing.T) {
	n := newNode(t, setup{vfs: 8})
	job := newJobSpace(t)
	_, err := n.attach(job)
	require.NoError(t, err)
	whole, err := os.ReadFile(store(n.site.State).vfPath(newCard(0).VFAddress(0)))
	require.NoError(t, err)
	n.release()
	broken := map[string]string{
		newCard(0).VFAddress(0): "", newCard(0).VFAddress(1): string(whole[:len(whole)/2]), newCard(0).VFAddress(2): string(whole) + "{}",
		newCard(0).VFAddress(3): strings.Replace(string(whole), "\"job\"", "\"jib\"", 1),
		newCard(0).VFAddress(4): string(whole), // it speaks of another VF
		newCard(0).VFAddress(5): strings.Replace(strings.ReplaceAll(string(whole), newCard(0).VFAddress(0), newCard(0).VFAddress(5)), "\"routes\"", "\"roots\"", 1),
		newCard(0).VFAddress(6): strings.Replace(strings.ReplaceAll(string(whole), newCard(0).VFAddress(0), newCard(0).VFAddress(6)), "4711", "../4711", 1),
	}
	for pci, text := range broken {
		require.NoError(t, os.WriteFile(store(n.site.State).vfPath(pci), []byte(text), 0o600))
	}
	held, err := ListHeld(n.site.State)
	require.NoError(t, err)
	assert.Len(t, held, 7)
	for _, vf := range held {
		assert.Contains(t, vf.Quarantined, "is damaged")
		assert.Empty(t, vf.Job+vf.Rail)
	}
	swept, err := Sweep(t.Context(), n.site, isNeverAlive)
	require.NoError(t, err)
	assert.Len(t, swept.Leftovers, 7)
	for _, k := range swept.Leftovers {
		assert.Contains(t, k.Why, "is damaged")
		_, err := os.Stat(store(n.site.State).vfPath(k.PCI))
		assert.NoError(t, err, "never erased")
	}
	got, err := n.attach(job)
	require.NoError(t, err)
	assert.Equal(t, 7, got.Rails[0].VF)
	n.release()
	require.NoError(t, Lift(t.Context(), n.site.State, newCard(0).VFAddress(3), nil))

	require.NoError(t, os.WriteFile(store(n.site.State).jobPath("4711"), []byte("{"), 0o600))
	_, err = n.attach(job)
	assert.ErrorContains(t, err, "jobs/4711.json is damaged")
	assert.ErrorContains(t, Release(t.Context(), n.site, "4711"), "jobs/4711.json is damaged")
}

// TestAVFThatDoesNotComeBack checks that a missing VF keeps its addresses, for which it may
// still answer.
func TestAVFThatDoesNotComeBack(t *testing.T) {
	n := newNode(t, setup{control: true, directory: true})
	n.site.limits.home = 100 * time.Millisecond
	before := n.takeSnapshot()
	job := newJobSpace(t)
	_, err := n.attach(job)
	require.NoError(t, err)
	job.Close()
	n.waitForNamespaces()
	err = Release(t.Context(), n.site, "4711")
	require.ErrorIs(t, err, link.ErrNotFound)
	assert.ErrorContains(t, err, "still missing after 100ms: check for a process that is left of the job, and for an unbound driver")
	_, err = n.attach(newJobSpace(t))
	assert.ErrorContains(t, err, "job 4711: cannot release its previous network")
	swept, err := Sweep(t.Context(), n.site, isNeverAlive)
	require.NoError(t, err)
	assert.Len(t, swept.Leftovers, 1)
	assert.Contains(t, n.takeSnapshot(), "prod,4711,node1,rail0")
	assert.NotContains(t, n.takeSnapshot(), "prod,4711,node1,control")
	n.returnVFs()
	_, err = n.attach(newJobSpace(t))
	require.NoError(t, err)
	n.release()
	requireSame(t, before, n.takeSnapshot())
}

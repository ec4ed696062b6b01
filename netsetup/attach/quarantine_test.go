// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/link"
)

// stubborn is a node whose VF 0 of pf0 keeps its VLAN until the error is taken away.
func stubborn(t *testing.T, failure *error) *node {
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
	n := stubborn(t, &failure)
	job := jobSpace(t)
	before, empty := n.snapshot(), inside(t, job)
	_, err := n.attach(job)
	require.NoError(t, err)
	err = Release(t.Context(), n.site, "4711")
	require.ErrorContains(t, err, "rail rail0 (VF 0 of pf0, 0000:80:01.0) is in quarantine: undo \"knobs\": the card hangs; `gojail sweep` tries again")
	assert.NotContains(t, err.Error(), "\n")
	same(t, empty, inside(t, job))
	held, quarantined, err := Held(n.site.State)
	require.NoError(t, err)
	assert.Empty(t, held)
	assert.Len(t, quarantined, 1)
	assert.Contains(t, quarantined[card(0).VF(0)], "after job 4711: undo \"knobs\": the card hangs")

	got, err := Attach(t.Context(), n.site, Job{ID: "4712", Netns: job.FD()})
	require.NoError(t, err, "others go on")
	assert.Equal(t, card(0).VF(1), got.Rails[0].PCI)
	swept, err := Sweep(t.Context(), n.site, func(job string) bool { return job == "4712" })
	require.NoError(t, err)
	assert.Len(t, swept.Problems, 1)
	assert.Len(t, swept.Kept, 3)
	require.NoError(t, Release(t.Context(), n.site, "4712"))

	failure = nil
	swept, err = Sweep(t.Context(), n.site, nobody)
	require.NoError(t, err)
	assert.Empty(t, swept.Problems)
	assert.Empty(t, swept.Kept)
	same(t, before, n.snapshot())
}

// TestTheSameJobGoesOnWithoutTheQuarantinedVF: also when it is still alive, Sweep
// tries that VF again, and leaves the job's own alone.
func TestTheSameJobGoesOnWithoutTheQuarantinedVF(t *testing.T) {
	failure := errors.New("the card hangs")
	n := stubborn(t, &failure)
	before := n.snapshot()
	_, err := n.attach(jobSpace(t))
	require.NoError(t, err)
	second := jobSpace(t)
	got, err := n.attach(second)
	require.NoError(t, err)
	assert.Equal(t, card(0).VF(1), got.Rails[0].PCI)
	failure = nil
	swept, err := Sweep(t.Context(), n.site, func(string) bool { return true })
	require.NoError(t, err)
	assert.Empty(t, swept.Problems)
	assert.Len(t, swept.Kept, 2)
	assert.Contains(t, inside(t, second), "link net1")
	n.release()
	same(t, before, n.snapshot())
}

func TestLift(t *testing.T) {
	failure := errors.New("the card hangs")
	n := stubborn(t, &failure)
	_, err := n.attach(jobSpace(t))
	require.NoError(t, err)
	require.Error(t, Release(t.Context(), n.site, "4711"))
	require.NoError(t, Lift(n.site.State, card(0).VF(0)))
	assert.ErrorContains(t, Lift(n.site.State, card(0).VF(0)), "is not in quarantine")
	assert.ErrorContains(t, Lift(n.site.State, "../../etc/passwd"), "is no PCI address")
	_, quarantined, err := Held(n.site.State)
	require.NoError(t, err)
	assert.Empty(t, quarantined)
}

// TestNameTaken: another interface has the VF's name meanwhile.
func TestNameTaken(t *testing.T) {
	n := newNode(t, setup{})
	job := jobSpace(t)
	before := n.snapshot()
	_, err := n.attach(job)
	require.NoError(t, err)
	sh(t, n.host, "ip link add pf0v0 type bridge")
	err = Release(t.Context(), n.site, "4711")
	require.ErrorIs(t, err, link.ErrNameTaken)
	sh(t, n.host, "ip link show gj000080010; ip link del pf0v0")
	swept, err := Sweep(t.Context(), n.site, nobody)
	require.NoError(t, err)
	assert.Empty(t, swept.Problems)
	same(t, before, n.snapshot())
}

func TestDamagedJournals(t *testing.T) {
	n := newNode(t, setup{vfs: 8})
	job := jobSpace(t)
	_, err := n.attach(job)
	require.NoError(t, err)
	whole, err := os.ReadFile(store(n.site.State).vf(card(0).VF(0)))
	require.NoError(t, err)
	n.release()
	broken := map[string]string{
		card(0).VF(0): "", card(0).VF(1): string(whole[:len(whole)/2]), card(0).VF(2): string(whole) + "{}",
		card(0).VF(3): strings.Replace(string(whole), "\"job\"", "\"jib\"", 1),
		card(0).VF(4): string(whole), // it speaks of another VF
		card(0).VF(5): strings.Replace(strings.ReplaceAll(string(whole), card(0).VF(0), card(0).VF(5)), "\"routes\"", "\"roots\"", 1),
		card(0).VF(6): strings.Replace(strings.ReplaceAll(string(whole), card(0).VF(0), card(0).VF(6)), "4711", "../4711", 1),
	}
	for pci, text := range broken {
		require.NoError(t, os.WriteFile(store(n.site.State).vf(pci), []byte(text), 0o600))
	}
	_, quarantined, err := Held(n.site.State)
	require.NoError(t, err)
	assert.Len(t, quarantined, 7)
	swept, err := Sweep(t.Context(), n.site, nobody)
	require.NoError(t, err)
	assert.Len(t, swept.Kept, 7)
	for _, k := range swept.Kept {
		assert.Contains(t, k.Why, "is damaged")
		_, err := os.Stat(store(n.site.State).vf(k.PCI))
		assert.NoError(t, err, "never erased")
	}
	got, err := n.attach(job)
	require.NoError(t, err)
	assert.Equal(t, 7, got.Rails[0].VF)
	n.release()
	require.NoError(t, Lift(n.site.State, card(0).VF(3)))

	require.NoError(t, os.WriteFile(store(n.site.State).job("4711"), []byte("{"), 0o600))
	_, err = n.attach(job)
	assert.ErrorContains(t, err, "jobs/4711.json is damaged")
	assert.ErrorContains(t, Release(t.Context(), n.site, "4711"), "jobs/4711.json is damaged")
}

func TestAVFThatDoesNotComeBack(t *testing.T) {
	n := newNode(t, setup{control: true, directory: true})
	n.site.limits.home = 100 * time.Millisecond
	before := n.snapshot()
	job := jobSpace(t)
	_, err := n.attach(job)
	require.NoError(t, err)
	job.Close()
	n.gone()
	err = Release(t.Context(), n.site, "4711")
	require.ErrorIs(t, err, link.ErrNotFound)
	assert.ErrorContains(t, err, "it has not come in 100ms: is a process of the job left, or its driver unbound?")
	_, err = n.attach(jobSpace(t))
	assert.ErrorContains(t, err, "job 4711: what it had before is not released")
	swept, err := Sweep(t.Context(), n.site, nobody)
	require.NoError(t, err)
	assert.Len(t, swept.Kept, 1)
	assert.Contains(t, n.snapshot(), "prod,4711,node1,rail0")
	assert.NotContains(t, n.snapshot(), "prod,4711,node1,control")
	n.kernelReturns()
	_, err = n.attach(jobSpace(t))
	require.NoError(t, err)
	n.release()
	same(t, before, n.snapshot())
}

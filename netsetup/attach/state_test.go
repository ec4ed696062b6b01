// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/link"
)

func TestAHeldVFIsNotGiven(t *testing.T) {
	n := newNode(t, setup{vfs: 2})
	for i, id := range []string{"1", "2"} {
		got, err := Attach(t.Context(), n.site, Job{ID: id, Netns: jobSpace(t).FD()})
		require.NoError(t, err)
		assert.Equal(t, i, got.Rails[0].VF)
	}
	before := n.snapshot()
	job := jobSpace(t)
	_, err := Attach(t.Context(), n.site, Job{ID: "3", Netns: job.FD()})
	assert.EqualError(t, err, "job 3: rail rail0: no VF is free (0000:80:01.0: job 1; 0000:80:01.1: job 2); wait for those jobs, or run: gojail sweep")
	_, err = Attach(t.Context(), n.site, Job{ID: "3", Netns: job.FD(), Devices: []string{card(0).VF(1)}})
	assert.ErrorIs(t, err, errNoVF)
	same(t, before, n.snapshot())
	held, quarantined, err := Held(n.site.State)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{card(0).VF(0): "1", card(0).VF(1): "2"}, held)
	assert.Empty(t, quarantined)
	assert.ErrorContains(t, Lift(n.site.State, card(0).VF(0)), "job 1 has it")
	require.NoError(t, Release(t.Context(), n.site, "1"))
	_, err = Attach(t.Context(), n.site, Job{ID: "3", Netns: job.FD()})
	require.NoError(t, err)
}

// stubborn is a node whose VF 0 of pf0 keeps its VLAN until the error is taken away.
func stubborn(t *testing.T, failure *error) *node {
	n := newNode(t, setup{cards: 2, policy: "vlan = 7"})
	set, pf := n.site.Hardware.SetVF, pfIndex(t, n, 0)
	n.site.Hardware.SetVF = func(ns *link.Namespace, index, vf int, want link.VFKnobs) error {
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

// TestAnotherBoot: VFs, namespaces and interfaces are new, so nothing is done to
// them; leases are not.
func TestAnotherBoot(t *testing.T) {
	n := newNode(t, setup{cards: 2, directory: true, control: true, policy: "vlan = 7"})
	job := jobSpace(t)
	_, err := n.attach(job)
	require.NoError(t, err)
	boot, err := bootID("/proc")
	require.NoError(t, err)
	for _, path := range []string{"vf/" + card(0).VF(0), "vf/" + card(1).VF(0), "jobs/4711"} {
		path = filepath.Join(n.site.State, path+".json")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), boot, "another")), 0o600))
	}
	had := inside(t, job)
	swept, err := Sweep(t.Context(), n.site, func(string) bool { return true })
	require.NoError(t, err)
	assert.Empty(t, swept.Problems)
	assert.Empty(t, swept.Kept)
	same(t, had, inside(t, job))
	assert.NotContains(t, n.snapshot(), "4711,")
	assert.NotContains(t, n.snapshot(), ".json")
	k, err := n.site.Hardware.ReadVF(n.host, pfIndex(t, n, 0), 0)
	require.NoError(t, err)
	assert.Equal(t, 7, k.VLAN.ID)
}

// TestARebootThatEmptiedTheState: leases are all that is left.
func TestARebootThatEmptiedTheState(t *testing.T) {
	n := newNode(t, setup{directory: true})
	got, err := n.attach(jobSpace(t))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(n.site.State))
	swept, err := Sweep(t.Context(), n.site, func(job string) bool { return job == "4711" })
	require.NoError(t, err)
	assert.Empty(t, swept.Addresses)
	swept, err = Sweep(t.Context(), n.site, nobody)
	require.NoError(t, err)
	assert.Equal(t, []string{got.Rails[0].Addresses[0].Addr().String() + " of rail rail0 of job 4711 on node1"}, swept.Addresses)
	assert.NotContains(t, n.snapshot(), "4711")
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

// TestTheHolderDied between two steps of a job: the next one finds VFs under the
// names of the job in the host.
func TestTheHolderDied(t *testing.T) {
	n := newNode(t, setup{cards: 2, control: true, directory: true})
	before := n.snapshot()
	first := jobSpace(t)
	_, err := n.attach(first)
	require.NoError(t, err)
	first.Close()
	n.gone()
	n.kernelReturns()
	swept, err := Sweep(t.Context(), n.site, func(string) bool { return true })
	require.NoError(t, err)
	assert.Len(t, swept.Kept, 2)
	_, err = n.attach(jobSpace(t))
	require.NoError(t, err)
	n.release()
	same(t, before, n.snapshot())
}

// TestANumberThatIsUsedAgain: the record speaks of a namespace of that number, but
// of an older one, which had the VFs.
func TestANumberThatIsUsedAgain(t *testing.T) {
	n := newNode(t, setup{cards: 2})
	before := n.snapshot()
	old, job := jobSpace(t), jobSpace(t)
	_, err := n.attach(old)
	require.NoError(t, err)
	was, err := inode(old.FD())
	require.NoError(t, err)
	is, err := inode(job.FD())
	require.NoError(t, err)
	path := store(n.site.State).job("4711")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), fmt.Sprint(was), fmt.Sprint(is), 1)), 0o600))
	_, err = n.attach(job)
	require.NoError(t, err)
	assert.Contains(t, inside(t, job), "link net2")
	assert.NotContains(t, inside(t, old), "link net")
	n.release()
	same(t, before, n.snapshot())
}

// TestAVFThatDoesNotComeBack keeps its addresses: it may answer for them somewhere.
func TestAVFThatDoesNotComeBack(t *testing.T) {
	usual := homeTime
	homeTime = 100 * time.Millisecond
	t.Cleanup(func() { homeTime = usual })
	n := newNode(t, setup{control: true, directory: true})
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

// TestOneJobAtATime: Attach waits for Attach, and Sweep leaves alone what is under way.
func TestOneJobAtATime(t *testing.T) {
	n := newNode(t, setup{cards: 2, control: true})
	job := jobSpace(t)
	begun, goOn := make(chan bool, 8), make(chan bool)
	interrupt = func(pci, step string, done bool) error {
		if step == "move" && !done {
			begun <- true
			<-goOn
		}
		return nil
	}
	t.Cleanup(func() { interrupt = func(string, string, bool) error { return nil } })
	var wait sync.WaitGroup
	var got [3]*Network
	var errs [3]error
	for i := range got {
		wait.Go(func() { got[i], errs[i] = n.attach(job) })
	}
	<-begun
	swept, err := Sweep(t.Context(), n.site, nobody)
	assert.NoError(t, err)
	assert.Equal(t, []Kept{{Job: "4711", Why: "it is being attached or released at this moment"}}, swept.Kept)
	close(goOn)
	wait.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	assert.Equal(t, got[0].Env, got[1].Env)
	assert.Equal(t, got[0].Env, got[2].Env)
	assert.LessOrEqual(t, len(begun), 1, "each rail once")
	n.release()
}

// TestACallerWithoutTime: what had been done is undone although the caller's time is over.
func TestACallerWithoutTime(t *testing.T) {
	n := newNode(t, setup{cards: 2, control: true, directory: true})
	job := jobSpace(t)
	before, empty := n.snapshot(), inside(t, job)
	ctx, cancel := context.WithCancel(t.Context())
	interrupt = func(pci, step string, done bool) error {
		if step == "routes" && done {
			cancel()
		}
		return nil
	}
	t.Cleanup(func() { interrupt = func(string, string, bool) error { return nil } })
	_, err := Attach(ctx, n.site, Job{ID: "4711", Netns: job.FD()})
	require.ErrorIs(t, err, context.Canceled)
	same(t, before, n.snapshot())
	same(t, empty, inside(t, job))
}

func TestAnotherLabelInTheSameNamespace(t *testing.T) {
	n := newNode(t, setup{cards: 2})
	job := jobSpace(t)
	got, err := Attach(t.Context(), n.site, Job{ID: "4711", Netns: job.FD(), Label: "rail1"})
	require.NoError(t, err)
	assert.Equal(t, "net2", got.Rails[0].Name)
	_, err = n.attach(job)
	assert.ErrorContains(t, err, "job 4711 has the network \"rail1\" in this namespace already")
	n.site.Config = nil
	_, err = n.attach(job)
	assert.ErrorContains(t, err, "write network.toml")
	err = Release(t.Context(), n.site, "4711")
	assert.ErrorContains(t, err, "undo \"address\": no configuration says where address pools are")
	assert.NotContains(t, inside(t, job), "link net", "but the VF is home")
}

func TestManyJobs(t *testing.T) {
	n := newNode(t, setup{vfs: 50, control: true, directory: true})
	before := n.snapshot()
	for range 2 {
		var wait sync.WaitGroup
		jobs, got, errs := make([]*link.Namespace, 50), make([]*Network, 50), make([]error, 50)
		for i := range jobs {
			jobs[i] = jobSpace(t)
			wait.Go(func() {
				got[i], errs[i] = Attach(t.Context(), n.site, Job{ID: fmt.Sprint(i), Netns: jobs[i].FD()})
			})
		}
		wait.Wait()
		require.NoError(t, errors.Join(errs...))
		addresses := map[netip.Addr]bool{}
		for _, g := range got {
			addresses[g.Control.Addresses[0]], addresses[g.Rails[0].Addresses[0].Addr()] = true, true
		}
		assert.Len(t, addresses, 100)
		held, _, err := Held(n.site.State)
		require.NoError(t, err)
		assert.Len(t, held, 50)
		for i := range jobs {
			wait.Go(func() { errs[i] = Release(t.Context(), n.site, fmt.Sprint(i)) })
		}
		wait.Wait()
		require.NoError(t, errors.Join(errs...))
		same(t, before, n.snapshot())
		for _, job := range jobs {
			job.Close()
		}
	}
}

func TestManyJobsInARow(t *testing.T) {
	n := newNode(t, setup{control: true, directory: true})
	before, files := n.snapshot(), descriptors(t)
	job := jobSpace(t)
	empty := inside(t, job)
	for i := range 120 {
		id := fmt.Sprint(i)
		_, err := Attach(t.Context(), n.site, Job{ID: id, Netns: job.FD()})
		require.NoError(t, err)
		require.NoError(t, Release(t.Context(), n.site, id))
	}
	same(t, before, n.snapshot())
	same(t, empty, inside(t, job))
	assert.LessOrEqual(t, descriptors(t), files+10)
}

func descriptors(t *testing.T) int {
	all, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(all)
}

func TestWhatIsNoJob(t *testing.T) {
	n := newNode(t, setup{})
	for _, id := range []string{"", "../1", "a b", "1/2", ".x"} {
		_, err := Attach(t.Context(), n.site, Job{ID: id, Netns: n.host.FD()})
		assert.ErrorContains(t, err, "is no job")
		assert.ErrorContains(t, Release(t.Context(), n.site, id), "is no job")
		_, err = Show(n.site.State, id)
		assert.ErrorContains(t, err, "is no job")
	}
	_, err := Show(n.site.State, "4711")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Attach(t.Context(), n.site, Job{ID: "1", Netns: -1})
	assert.ErrorContains(t, err, "descriptor -1")
	_, err = Attach(t.Context(), n.site, Job{ID: "1", Netns: jobSpace(t).FD(), Label: "nowhere"})
	assert.ErrorContains(t, err, "network \"nowhere\" is unknown")
	held, quarantined, err := Held(filepath.Join(n.dir, "not there"))
	assert.NoError(t, err)
	assert.Empty(t, held)
	assert.Empty(t, quarantined)
}

func TestStateIsRootsAlone(t *testing.T) {
	n := newNode(t, setup{})
	require.NoError(t, os.Chmod(n.site.State, 0o755))
	_, err := n.attach(jobSpace(t))
	require.NoError(t, err)
	info, err := os.Stat(n.site.State)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, os.Chown(n.site.State, 65534, 65534))
	assert.ErrorContains(t, Release(t.Context(), n.site, "4711"), "belongs to uid 65534")
	require.NoError(t, os.Chown(n.site.State, 0, 0))
	n.release()
}

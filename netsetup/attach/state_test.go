// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/procfs"
)

func TestAHeldVFIsNotGiven(t *testing.T) {
	n := newNode(t, setup{vfs: 2})
	for i, id := range []string{"1", "2"} {
		got, err := Attach(t.Context(), n.site, Job{ID: id, Netns: newJobSpace(t).FD()})
		require.NoError(t, err)
		assert.Equal(t, i, got.Rails[0].VF)
	}
	before := n.takeSnapshot()
	job := newJobSpace(t)
	_, err := Attach(t.Context(), n.site, Job{ID: "3", Netns: job.FD()})
	assert.EqualError(t, err, "job 3: rail rail0: no VF is free (0000:80:01.0: job 1; 0000:80:01.1: job 2); wait for those jobs, or run: gojail sweep")
	_, err = Attach(t.Context(), n.site, Job{ID: "3", Netns: job.FD(), Devices: []string{newCard(0).VFAddress(1)}})
	assert.ErrorIs(t, err, errNoVF)
	requireSame(t, before, n.takeSnapshot())
	held, err := ListHeld(n.site.State)
	require.NoError(t, err)
	boot, err := procfs.ReadBootID("/proc")
	require.NoError(t, err)
	var want []HeldVF
	for i, id := range []string{"1", "2"} {
		vf := newCard(0).VFAddress(i)
		entry, err := store(n.site.State).readEntry(vf)
		require.NoError(t, err)
		assert.NotEmpty(t, entry.Original.Name)
		want = append(want, HeldVF{PCI: vf, Job: id, Rail: "rail0", Boot: boot, Interface: entry.Original.Name})
	}
	assert.Equal(t, want, held)
	networks, problems := ListNetworks(n.site.State)
	assert.Empty(t, problems)
	require.Len(t, networks, 2)
	assert.Equal(t, "2", networks[1].Job)
	assert.Equal(t, newCard(0).VFAddress(1), networks[1].Rails[0].PCI)
	assert.ErrorContains(t, Lift(t.Context(), n.site.State, newCard(0).VFAddress(0), nil), "job 1 holds it")
	require.NoError(t, Release(t.Context(), n.site, "1"))
	_, err = Attach(t.Context(), n.site, Job{ID: "3", Netns: job.FD()})
	require.NoError(t, err)
}

// TestAnotherBoot checks that VFs, namespaces and interfaces are not changed after a reboot,
// because they are new, and that leases are released.
func TestAnotherBoot(t *testing.T) {
	n := newNode(t, setup{cards: 2, directory: true, control: true, policy: "vlan = 7"})
	job := newJobSpace(t)
	_, err := n.attach(job)
	require.NoError(t, err)
	boot, err := procfs.ReadBootID("/proc")
	require.NoError(t, err)
	for _, path := range []string{"vf/" + newCard(0).VFAddress(0), "vf/" + newCard(1).VFAddress(0), "jobs/4711"} {
		path = filepath.Join(n.site.State, path+".json")
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), boot, "another")), 0o600))
	}
	had := readSpace(t, job)
	swept, err := Sweep(t.Context(), n.site, func(string) bool { return true })
	require.NoError(t, err)
	assert.Empty(t, swept.Problems)
	assert.Empty(t, swept.Leftovers)
	requireSame(t, had, readSpace(t, job))
	assert.NotContains(t, n.takeSnapshot(), "4711,")
	assert.NotContains(t, n.takeSnapshot(), ".json")
	k, err := n.site.hardware.readVF(n.host, pfIndex(t, n, 0), 0)
	require.NoError(t, err)
	assert.Equal(t, 7, k.VLAN.ID)
}

// TestARebootThatEmptiedTheState: leases are all that is left.

// TestARebootThatEmptiedTheState leaves leases only.
func TestARebootThatEmptiedTheState(t *testing.T) {
	n := newNode(t, setup{directory: true})
	got, err := n.attach(newJobSpace(t))
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(n.site.State))
	swept, err := Sweep(t.Context(), n.site, func(job string) bool { return job == "4711" })
	require.NoError(t, err)
	assert.Empty(t, swept.Addresses)
	swept, err = Sweep(t.Context(), n.site, isNeverAlive)
	require.NoError(t, err)
	assert.Equal(t, []string{got.Rails[0].Addresses[0].Addr().String() + " of rail rail0 of job 4711 on node1"}, swept.Addresses)
	assert.NotContains(t, n.takeSnapshot(), "4711")
}

// TestTheHolderDied between two steps of a job: the next one finds VFs under the

// names of the job in the host.

// TestTheHolderDied ends the namespace between two steps of a job: the next step finds the
// VFs in the host's namespace under the names of the job.
func TestTheHolderDied(t *testing.T) {
	n := newNode(t, setup{cards: 2, control: true, directory: true})
	before := n.takeSnapshot()
	first := newJobSpace(t)
	_, err := n.attach(first)
	require.NoError(t, err)
	first.Close()
	n.waitForNamespaces()
	n.returnVFs()
	swept, err := Sweep(t.Context(), n.site, func(string) bool { return true })
	require.NoError(t, err)
	assert.Len(t, swept.Leftovers, 2)
	_, err = n.attach(newJobSpace(t))
	require.NoError(t, err)
	n.release()
	requireSame(t, before, n.takeSnapshot())
}

// TestANumberThatIsUsedAgain: the record speaks of a namespace of that number, but

// of an older one, which had the VFs.

// TestANumberThatIsUsedAgain uses a record of an older namespace with the same number, which
// had the VFs.
func TestANumberThatIsUsedAgain(t *testing.T) {
	n := newNode(t, setup{cards: 2})
	before := n.takeSnapshot()
	old, job := newJobSpace(t), newJobSpace(t)
	_, err := n.attach(old)
	require.NoError(t, err)
	was, err := readInode(old.FD())
	require.NoError(t, err)
	is, err := readInode(job.FD())
	require.NoError(t, err)
	path := store(n.site.State).jobPath("4711")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), fmt.Sprint(was), fmt.Sprint(is), 1)), 0o600))
	_, err = n.attach(job)
	require.NoError(t, err)
	assert.Contains(t, readSpace(t, job), "link net2")
	assert.NotContains(t, readSpace(t, old), "link net")
	n.release()
	requireSame(t, before, n.takeSnapshot())
}

// TestAVFThatDoesNotComeBack keeps its addresses: it may answer for them somewhere.

// TestOneJobAtATime: Attach waits for Attach, and Sweep leaves alone what is under way.

// TestACallerWithoutTime: what had been done is undone although the caller's time is over.

func TestAnotherLabelInTheSameNamespace(t *testing.T) {
	n := newNode(t, setup{cards: 2})
	job := newJobSpace(t)
	got, err := Attach(t.Context(), n.site, Job{ID: "4711", Netns: job.FD(), Label: "rail1"})
	require.NoError(t, err)
	assert.Equal(t, "net2", got.Rails[0].Name)
	_, err = n.attach(job)
	assert.ErrorContains(t, err, "job 4711 already has the network \"rail1\" in this namespace")
	n.site.Config = nil
	_, err = n.attach(job)
	assert.ErrorContains(t, err, "write network.toml")
	err = Release(t.Context(), n.site, "4711")
	assert.ErrorContains(t, err, "undo \"address\": the address pools are unknown without network.toml")
	assert.NotContains(t, readSpace(t, job), "link net", "but the VF is home")
}

func TestWhatIsNoJob(t *testing.T) {
	n := newNode(t, setup{})
	for _, id := range []string{"", "../1", "a b", "1/2", ".x"} {
		_, err := Attach(t.Context(), n.site, Job{ID: id, Netns: n.host.FD()})
		assert.ErrorContains(t, err, "is not a job")
		assert.ErrorContains(t, Release(t.Context(), n.site, id), "is not a job")
		_, err = ReadNetwork(n.site.State, id)
		assert.ErrorContains(t, err, "is not a job")
	}
	_, err := ReadNetwork(n.site.State, "4711")
	assert.ErrorIs(t, err, fs.ErrNotExist)
	_, err = Attach(t.Context(), n.site, Job{ID: "1", Netns: -1})
	assert.ErrorContains(t, err, "descriptor -1")
	_, err = Attach(t.Context(), n.site, Job{ID: "1", Netns: newJobSpace(t).FD(), Label: "nowhere"})
	assert.ErrorContains(t, err, "network \"nowhere\" is unknown")
	held, err := ListHeld(filepath.Join(n.dir, "not there"))
	assert.NoError(t, err)
	assert.Empty(t, held)
}

func TestStateIsRootsAlone(t *testing.T) {
	n := newNode(t, setup{})
	require.NoError(t, os.Chmod(n.site.State, 0o755))
	_, err := n.attach(newJobSpace(t))
	require.NoError(t, err)
	info, err := os.Stat(n.site.State)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, os.Chown(n.site.State, 65534, 65534))
	assert.ErrorContains(t, Release(t.Context(), n.site, "4711"), "belongs to uid 65534")
	require.NoError(t, os.Chown(n.site.State, 0, 0))
	n.release()
}

// TestSweepDoesNotWait checks that a pool whose server hangs does not delay the sweep of the
// others.
func TestSweepDoesNotWait(t *testing.T) {
	n := newNode(t, setup{cards: 2, directory: true})
	n.site.limits.sweep = 300 * time.Millisecond
	lock, err := os.Create(filepath.Join(n.site.State, "pool-r0.lock"))
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	swept, err := Sweep(ctx, n.site, isNeverAlive)
	require.NoError(t, err)
	require.NoError(t, ctx.Err())
	require.Len(t, swept.Problems, 1)
	assert.Contains(t, swept.Problems[0], "pool r0: cannot open: another process of this node holds "+lock.Name())
	lock.Close()
	n.site.limits.sweep = time.Minute
	swept, err = Sweep(ctx, n.site, isNeverAlive)
	require.NoError(t, err)
	assert.Empty(t, swept.Problems)
}

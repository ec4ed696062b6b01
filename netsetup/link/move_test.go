// SPDX-License-Identifier: Apache-2.0

package link

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestMoveThereAndBack(t *testing.T) {
	host, job := newSpace(t), newSpace(t)
	index, _ := addVeth(t, host, "ens1f0v2", host, "far")
	setUp(t, host, index, "192.0.2.1/24")
	before, err := host.FindByIndex(index)
	require.NoError(t, err)
	moved, err := Move(host, index, job, "net1")
	require.NoError(t, err)
	assert.Equal(t, "net1", moved.Name)
	assert.Equal(t, before.MAC, moved.MAC)
	assert.False(t, moved.Up)
	_, err = host.FindByName("ens1f0v2")
	assert.ErrorIs(t, err, ErrNotFound)
	addresses, err := job.ListAddresses(moved.Index)
	require.NoError(t, err)
	assert.Empty(t, addresses)

	back, err := Move(job, moved.Index, host, "ens1f0v2")
	require.NoError(t, err)
	assert.Equal(t, "ens1f0v2", back.Name)
	assert.Equal(t, before.MAC, back.MAC)
	assert.Equal(t, []string{"lo"}, listNames(t, job))
}

// TestMoveWhileTheHostHasTheName uses a name of the job that the host also uses, and a name
// of the host that the job also uses; no third name is seen.
func TestMoveWhileTheHostHasTheName(t *testing.T) {
	host, job := newSpace(t), newSpace(t)
	addVeth(t, host, "net1", host, "other")
	addVeth(t, job, "eth0", job, "far")
	index, _ := addVeth(t, host, "eth0", host, "peer")
	moved, err := Move(host, index, job, "net1")
	require.NoError(t, err)
	_, err = Move(job, moved.Index, host, "eth0")
	require.NoError(t, err)
}

func TestMoveToATakenName(t *testing.T) {
	host, job := newSpace(t), newSpace(t)
	index, _ := addVeth(t, host, "vf3", host, "peer")
	there, _ := addVeth(t, job, "net1", job, "far")
	want := listNames(t, host)
	check := func() {
		t.Helper()
		_, err := Move(host, index, job, "net1")
		assert.ErrorIs(t, err, ErrNameTaken)
		assert.ErrorContains(t, err, "move network interface vf3 to another namespace as net1: the name is taken by")
		assert.Equal(t, want, listNames(t, host))
	}
	check()
	require.NoError(t, job.Rename(there, "other"))
	require.NoError(t, job.AddAltNames(there, []string{"net1"}))
	check()
}

// TestMoveLosesTheRaceForTheName takes the name after Move has checked it. The kernel moves
// the link nevertheless, and Move fetches it back.
func TestMoveLosesTheRaceForTheName(t *testing.T) {
	host, job := newSpace(t), newSpace(t)
	index, _ := addVeth(t, host, "vf3", host, "peer")
	addVeth(t, job, "net1", job, "far")
	l, err := host.FindByIndex(index)
	require.NoError(t, err)
	assert.ErrorIs(t, host.moveOrReturn(l, job, "net1"), unix.EEXIST)
	back := findNamed(t, host, "vf3")
	assert.Equal(t, l.MAC, back.MAC)
	_, err = job.FindByName("vf3")
	assert.ErrorIs(t, err, ErrNotFound)
}

// TestAltNamesDoNotBlockAMove uses alternative names for which the kernel returns EEXIST:
// the new name, and names in the target.
func TestAltNamesDoNotBlockAMove(t *testing.T) {
	host, job := newSpace(t), newSpace(t)
	index, _ := addVeth(t, host, "vf3", host, "peer")
	addVeth(t, job, "enp1s0v3", job, "far")
	require.NoError(t, host.AddAltNames(index, []string{"net1", "enp1s0v3", "a-name-that-is-longer-than-15-characters"}))
	require.NoError(t, host.AddAltNames(index, []string{"net1"}), "again")
	require.ErrorIs(t, host.sendMove(index, job, "net7"), unix.EEXIST, "the kernel's own answer")
	byAlternative := findNamed(t, host, "a-name-that-is-longer-than-15-characters")
	assert.Equal(t, index, byAlternative.Index)

	moved, err := Move(host, index, job, "net1")
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"net1", "enp1s0v3"}, moved.Dropped)
	assert.Equal(t, []string{"a-name-that-is-longer-than-15-characters"}, moved.AltNames)
	back, err := Move(job, moved.Index, host, "vf3")
	require.NoError(t, err)
	require.NoError(t, host.AddAltNames(back.Index, moved.Dropped))
	assert.Len(t, findNamed(t, host, "vf3").AltNames, 3)
}

func TestAltNamesStayAfterAMoveThatFailed(t *testing.T) {
	host, job := newSpace(t), newSpace(t)
	index, _ := addVeth(t, host, "vf3", host, "peer")
	require.NoError(t, host.AddAltNames(index, []string{"net1"}))
	require.NoError(t, unix.Dup3(int(devNull(t).Fd()), job.fd, unix.O_CLOEXEC), "no namespace any more")
	_, err := Move(host, index, job, "net1")
	require.ErrorIs(t, err, unix.EINVAL)
	require.NotErrorIs(t, err, ErrNotFound)
	assert.Equal(t, []string{"net1"}, findNamed(t, host, "vf3").AltNames)
}

func TestRename(t *testing.T) {
	host := newSpace(t)
	index, other := addVeth(t, host, "net1", host, "dev57")
	require.NoError(t, host.AddAltNames(index, []string{"ens1f0v0"}))
	setUp(t, host, index)
	assert.ErrorIs(t, host.Rename(index, "dev57"), ErrNameTaken)
	require.NoError(t, host.Rename(index, "ens1f0v0"))
	require.NoError(t, host.Rename(index, "ens1f0v0"))
	assert.Empty(t, findNamed(t, host, "ens1f0v0").AltNames)
	require.NoError(t, host.Rename(other, "net1"))
}

func TestMoveOfWhatIsNotThere(t *testing.T) {
	host, job := newSpace(t), newSpace(t)
	_, err := Move(host, 4711, job, "net1")
	assert.ErrorIs(t, err, ErrNotFound)
	index, _ := addVeth(t, host, "vf3", host, "peer")
	for _, name := range []string{"", "a-name-that-is-longer-than-15-characters"} {
		_, err = Move(host, index, job, name)
		assert.ErrorContains(t, err, "a name has 1 to 15 characters")
	}
	_, err = host.FindByPCI("0000:86:00.2")
	assert.ErrorIs(t, err, ErrNotFound)
	_, err = host.FindByPCI("")
	assert.ErrorIs(t, err, ErrNotFound)
}

func listNames(t testing.TB, n *Namespace) (all []string) {
	t.Helper()
	links, err := n.ListLinks()
	require.NoError(t, err)
	for _, l := range links {
		all = append(all, l.Name)
	}
	return all
}

func devNull(t testing.TB) *os.File {
	t.Helper()
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	return file
}

// TestClosedNamespace checks that no call on a closed Namespace acts on the caller's own
// namespace.
func TestClosedNamespace(t *testing.T) {
	n := newSpace(t)
	n.Close()
	n.Close()
	(*Namespace)(nil).Close()
	_, err := n.FindByName("lo")
	assert.ErrorContains(t, err, "use of closed file")
	_, err = n.ListLinks()
	assert.ErrorContains(t, err, "use of closed file")
	assert.Panics(t, func() { n.SetUp(1) })
	_, err = n.ReadSysctl("/proc", "ipv4/ip_forward")
	assert.ErrorIs(t, err, unix.EBADF)
	_, err = Open(-1)
	assert.ErrorIs(t, err, unix.EBADF)
	_, err = Open(int(devNull(t).Fd()))
	assert.ErrorContains(t, err, "not an open network namespace")
}

// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/netsetup/config"
)

// site is a shared directory with a pool in it.
type site struct {
	pool  *config.Pool
	state string // each node's state directory lies below
}

func newSite(t testing.TB, subnet string) site {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: the directory must be root's")
	}
	dir := t.TempDir()
	shared := filepath.Join(dir, "shared")
	require.NoError(t, os.Mkdir(shared, 0o700))
	p := newNodePool(t, fmt.Sprintf("subnet = %q\ndirectory = %q", subnet, shared))
	return site{p, dir}
}

func (s site) open(t testing.TB, node string) *shared {
	t.Helper()
	p, err := Open(t.Context(), s.pool, node, filepath.Join(s.state, "state-"+node))
	require.NoError(t, err)
	return p.(*shared)
}

func newClaim(job, node, rail string) Claim {
	return Claim{Owner: Owner{Cluster: "prod", Job: job, Node: node, Rail: rail}, VF: "0000:86:00.2"}
}

func mustAcquire(t testing.TB, p Pool, c Claim) netip.Addr {
	t.Helper()
	a, err := p.Acquire(t.Context(), c)
	require.NoError(t, err)
	return a
}

// listAll returns what the directory holds, which is nothing but gojail's.
func listAll(t testing.TB, s *shared) list {
	t.Helper()
	all, err := s.readAll(t.Context())
	require.NoError(t, err)
	require.NoError(t, all.aliens)
	return all
}

// endQuarantines lets a node see all quarantines as over.
func endQuarantines(s *shared) {
	s.now = func() time.Time { return time.Now().Add(2 * quarantineTime) }
}

// requireClean requires that no address is leased, recorded or marked.
func requireClean(t testing.TB, s *shared) {
	t.Helper()
	var left []string
	require.NoError(t, filepath.WalkDir(s.root, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(s.root, path)
		depth := strings.Count(rel, "/")
		if filepath.Base(rel) == "self" {
			return err
		}
		if depth >= 2 || depth == 1 && !strings.HasPrefix(rel, "addresses/") && !strings.HasPrefix(rel, "nodes/") {
			left = append(left, rel)
		}
		return err
	}))
	require.Empty(t, left)
}

func TestSameKeySameAddress(t *testing.T) {
	site := newSite(t, "10.1.0.0/24")
	n1, n2 := site.open(t, "n1"), site.open(t, "n2")
	a := mustAcquire(t, n1, newClaim("7", "n1", "rail0"))
	require.Equal(t, a, mustAcquire(t, n1, newClaim("7", "n1", "rail0")), "asked again")
	require.Equal(t, a, mustAcquire(t, site.open(t, "n1"), newClaim("7", "n1", "rail0")), "by another process")
	seen := map[netip.Addr]bool{a: true}
	for _, b := range []netip.Addr{
		mustAcquire(t, n1, newClaim("7", "n1", "rail1")), mustAcquire(t, n1, newClaim("8", "n1", "rail0")), mustAcquire(t, n2, newClaim("7", "n2", "rail0")),
	} {
		require.False(t, seen[b], "another rail, job or node has another address")
		seen[b] = true
	}
	other := newClaim("7", "n1", "rail0")
	other.Cluster = "test"
	require.NotContains(t, seen, mustAcquire(t, n1, other), "so has another cluster")

	moved := newClaim("7", "n1", "rail0")
	moved.VF = "0000:86:00.3"
	require.Equal(t, a, mustAcquire(t, n1, moved), "with another VF")
	leases := listAll(t, n2).leases
	require.Len(t, leases, 5)
	for _, l := range leases {
		if l.Addr == a {
			require.Equal(t, moved.Owner, l.Owner)
			require.Equal(t, "0000:86:00.3", l.VF, "the lease names the VF that has it now")
			require.WithinDuration(t, time.Now(), l.Time, time.Minute)
		}
	}
}

func TestReleaseIsTheOwnersAlone(t *testing.T) {
	site := newSite(t, "10.1.0.0/30") // .1 and .2
	n1, n2 := site.open(t, "n1"), site.open(t, "n2")
	a := mustAcquire(t, n1, newClaim("7", "n1", "rail0"))
	// A record of an address that another owner has now.
	stale := Lease{newClaim("9", "n2", "rail0").Owner, a, "0000:86:00.2", time.Unix(1790000000, 0)}
	require.NoError(t, os.Link(n2.selfPath(), n2.recordPath(stale)))
	require.NoError(t, n2.Release(t.Context(), newClaim("9", "n2", "rail0").Owner))
	require.Len(t, listAll(t, n2).leases, 1, "the lease of n1 is there")
	require.ErrorContains(t, n2.Release(t.Context(), newClaim("7", "n1", "rail0").Owner), "opened for node n2")

	require.NoError(t, n1.Release(t.Context(), newClaim("7", "n1", "rail0").Owner))
	require.NoError(t, n1.Release(t.Context(), newClaim("7", "n1", "rail0").Owner), "twice")
	requireClean(t, n1)
}

func TestFullPoolAndRoomAgain(t *testing.T) {
	site := newSite(t, "10.1.0.0/22")
	p := site.open(t, "n1")
	seen := map[netip.Addr]bool{}
	for i := range 1022 {
		a := mustAcquire(t, p, newClaim(fmt.Sprint(i), "n1", "rail0"))
		require.False(t, seen[a])
		seen[a] = true
	}
	_, err := p.Acquire(t.Context(), newClaim("late", "n1", "rail0"))
	require.ErrorIs(t, err, errFull)
	require.ErrorContains(t, err, "no address is free of 1022; wait for jobs to end")
	marks, _ := os.ReadDir(p.joinPath("full"))
	require.Len(t, marks, 4, "every block is known to be full")
	for _, i := range []int{0, 511, 1021} {
		o := newClaim(fmt.Sprint(i), "n1", "rail0").Owner
		had, err := p.readRecords(o)
		require.NoError(t, err)
		require.FileExists(t, p.fullMarkPath(blockOf(had[0].Addr)))
		require.NoError(t, p.Release(t.Context(), o))
		require.NoFileExists(t, p.fullMarkPath(blockOf(had[0].Addr)))
		require.Equal(t, had[0].Addr, mustAcquire(t, p, newClaim("late", "n1", "rail0")), "the only free one")
		require.NoError(t, p.Release(t.Context(), newClaim("late", "n1", "rail0").Owner))
		mustAcquire(t, p, newClaim(fmt.Sprint(i), "n1", "rail0"))
	}
	freed, err := p.Sweep(t.Context(), func(Owner) bool { return false })
	require.NoError(t, err)
	require.Len(t, freed, 1022)
	requireClean(t, p)
}

func TestHugePools(t *testing.T) {
	for _, subnet := range []string{"10.0.0.0/8", "fd00:1::/64", "10.1.0.4/31", "10.1.0.9/32", "fd00::9/128"} {
		t.Run(subnet, func(t *testing.T) {
			p := newSite(t, subnet).open(t, "n1")
			a := mustAcquire(t, p, newClaim("1", "n1", "rail0"))
			require.True(t, netip.MustParsePrefix(subnet).Contains(a))
			require.NoError(t, p.Release(t.Context(), newClaim("1", "n1", "rail0").Owner))
			requireClean(t, p)
		})
	}
}

func TestSweepByJobState(t *testing.T) {
	site := newSite(t, "10.1.0.0/24")
	n1, n2 := site.open(t, "n1"), site.open(t, "n2")
	mustAcquire(t, n1, newClaim("dead", "n1", "rail0"))
	mustAcquire(t, n1, newClaim("live", "n1", "rail0"))
	mustAcquire(t, n2, newClaim("dead", "n2", "rail0"))
	alive := func(o Owner) bool { return o.Job == "live" }
	freed, err := n1.Sweep(t.Context(), alive)
	require.NoError(t, err)
	require.Len(t, freed, 1, "only this node's")
	require.Equal(t, newClaim("dead", "n1", "rail0").Owner, freed[0].Owner)
	require.Equal(t, "0000:86:00.2", freed[0].VF)
	require.Len(t, listAll(t, n2).leases, 2)
}

func TestConflictQuarantines(t *testing.T) {
	site := newSite(t, "10.1.0.0/28")
	n1, n2 := site.open(t, "n1"), site.open(t, "n2")
	now := time.Now()
	n1.now = func() time.Time { return now }
	n2.now = n1.now
	mac, _ := net.ParseMAC("02:00:00:00:00:05")
	c := newClaim("7", "n1", "rail0")
	first := mustAcquire(t, n1, c)
	second, err := n1.ReportConflict(t.Context(), c, first, mac)
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.Equal(t, second, mustAcquire(t, n1, c), "it stays the job's")
	_, err = n1.ReportConflict(t.Context(), c, first, mac)
	require.ErrorContains(t, err, "not leased by this job")

	// The state of a process that was killed between the mark and the end of the lease.
	old := Lease{c.Owner, first, c.VF, now}
	require.NoError(t, n1.Release(t.Context(), c.Owner))
	require.NoError(t, os.Link(n1.selfPath(), n1.recordPath(old)))
	require.NoError(t, os.Link(n1.selfPath(), n1.leasePath(old)))
	require.NotEqual(t, first, mustAcquire(t, n1, c))

	require.Equal(t, []Quarantined{{first, mac, "n1", time.Unix(now.Unix(), 0)}}, listAll(t, n2).quarantine)
	for i := range 12 { // 14 usable, one taken, one in quarantine
		require.NotEqual(t, first, mustAcquire(t, n2, newClaim(fmt.Sprint(i), "n2", "rail0")))
	}
	_, err = n2.Acquire(t.Context(), newClaim("12", "n2", "rail0"))
	require.ErrorIs(t, err, errFull)
	now = now.Add(quarantineTime + time.Second)
	require.Equal(t, first, mustAcquire(t, n2, newClaim("12", "n2", "rail0")), "the quarantine is over")
	require.Empty(t, listAll(t, n2).quarantine)
}

func TestConflictsAreBounded(t *testing.T) {
	site := newSite(t, "10.1.0.0/24")
	n1 := site.open(t, "n1")
	mac, _ := net.ParseMAC("02:00:00:00:00:05")
	c := newClaim("7", "n1", "rail0")
	a := mustAcquire(t, n1, c)
	var err error
	for range maxConflicts {
		a, err = n1.ReportConflict(t.Context(), c, a, mac)
		require.NoError(t, err)
	}
	_, err = n1.ReportConflict(t.Context(), c, a, mac)
	require.ErrorIs(t, err, ErrConflict)
	require.ErrorContains(t, err, "this node finds 9 addresses in use; check the VLAN")
	all := listAll(t, n1)
	require.Len(t, all.quarantine, maxConflicts)
	require.Empty(t, all.leases, "the job has no address")
	endQuarantines(n1)
	for range 2 {
		_, err = n1.Sweep(t.Context(), func(Owner) bool { return true })
		require.NoError(t, err)
	}
	requireClean(t, n1)
}

func TestDeadlineWhileTheNodeIsLocked(t *testing.T) {
	site := newSite(t, "10.1.0.0/24")
	p := site.open(t, "n1")
	held, err := p.takeLock(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = p.Acquire(ctx, newClaim("7", "n1", "rail0"))
	require.ErrorContains(t, err, "another process of this node holds")
	held.Close()
	mustAcquire(t, p, newClaim("7", "n1", "rail0"))
}

func TestDeadlineWhileTheServerHangs(t *testing.T) {
	p := newSite(t, "10.1.0.0/24").open(t, "n1")
	ctx, cancel := context.WithCancel(t.Context())
	hang, ended := make(chan struct{}), make(chan error)
	go func() {
		_, err := runLocked(ctx, p, "wait", func() (int, error) { cancel(); <-hang; return 0, nil })
		ended <- err
	}()
	require.ErrorContains(t, <-ended, "does not answer in time; check its file server")
	close(hang)
	mustAcquire(t, p, newClaim("7", "n1", "rail0"))
}

// TestAcquireAfterItsTime: nothing is leased on behalf of a caller whose time is over, and the node's lock is free.
func TestAcquireAfterItsTime(t *testing.T) {
	p := newSite(t, "10.1.0.0/24").open(t, "n1")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		_, err := p.Acquire(ended, newClaim("7", "n1", "rail0"))
		require.EqualError(t, err, "pool p: cannot lease an address for rail rail0 of job 7 on n1: the caller has no time left")
	}
	requireClean(t, p)
	mustAcquire(t, p, newClaim("7", "n1", "rail0"))
}

// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReleaseOfANodeThatIsGone(t *testing.T) {
	site := newSite(t, "10.1.0.0/24")
	n1, gone := site.open(t, "n1"), site.open(t, "gone")
	mustAcquire(t, n1, newClaim("7", "n1", "rail0"))
	mustAcquire(t, gone, newClaim("7", "gone", "rail0"))
	other := newClaim("8", "gone", "rail0")
	other.Cluster = "test"
	mustAcquire(t, gone, other)
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 5}
	inConflict := mustAcquire(t, gone, newClaim("9", "gone", "rail1"))
	_, err := gone.ReportConflict(t.Context(), newClaim("9", "gone", "rail1"), inConflict, mac)
	require.NoError(t, err)

	// It was killed while it prepared a lease, and a disk error took a record.
	half := Lease{newClaim("half", "gone", "rail0").Owner, parseIP("10.1.0.77"), "", time.Unix(1790000000, 0)}
	require.NoError(t, os.Link(gone.selfPath(), gone.recordPath(half)))
	require.NoError(t, os.MkdirAll(gone.freshPath(parseIP("10.1.0.77"), "gone"), 0o700))
	unrecorded := newClaim("unrecorded", "gone", "rail0")
	mustAcquire(t, gone, unrecorded)
	had, err := gone.readRecords(unrecorded.Owner)
	require.NoError(t, err)
	require.NoError(t, os.Remove(gone.recordPath(had[0])))

	before, err := List(t.Context(), site.pool, "head")
	require.NoError(t, err)
	require.Len(t, before.Leases, 5)
	require.Equal(t, inConflict, before.Quarantine[0].Addr)
	require.Equal(t, mac, before.Quarantine[0].MAC)

	freed, err := ReleaseNode(t.Context(), site.pool, "prod", "gone", "head")
	require.NoError(t, err)
	var jobs []string
	for _, l := range freed {
		require.Equal(t, "prod gone", l.Cluster+" "+l.Node)
		jobs = append(jobs, l.Job)
	}
	require.ElementsMatch(t, []string{"7", "9", "half", "unrecorded"}, jobs)
	require.NoDirExists(t, gone.freshPath(parseIP("10.1.0.77"), "gone"))
	after := listAll(t, n1)
	require.Len(t, after.leases, 2)
	require.Equal(t, before.Quarantine, after.quarantine, "the other machine has it still")
	for _, l := range after.leases {
		require.False(t, l.Cluster == "prod" && l.Node == "gone", l)
	}
	freed, err = ReleaseNode(t.Context(), site.pool, "prod", "gone", "head")
	require.NoError(t, err)
	require.Empty(t, freed, "twice")

	// The node comes back.
	mustAcquire(t, site.open(t, "gone"), newClaim("10", "gone", "rail0"))
	require.NoDirExists(t, n1.joinPath("nodes", "head"), "who asks leaves nothing")
}

func TestReleaseOfAnotherNodeIsChecked(t *testing.T) {
	site := newSite(t, "10.1.0.0/24")
	mustAcquire(t, site.open(t, "n1"), newClaim("7", "n1", "rail0"))
	for _, name := range []string{"", "..", "n1/../n1", "n[1-2]"} {
		_, err := ReleaseNode(t.Context(), site.pool, "prod", name, "head")
		require.ErrorContains(t, err, "the names may hold letters, digits and ._+- only", name)
		_, err = ReleaseNode(t.Context(), site.pool, name, "n1", "head")
		require.ErrorContains(t, err, "the names may hold letters, digits and ._+- only", name)
	}
	require.NoError(t, os.Chmod(site.pool.Directory, 0o755))
	_, err := ReleaseNode(t.Context(), site.pool, "prod", "n1", "head")
	require.ErrorContains(t, err, "run: chmod 700")
	_, err = List(t.Context(), site.pool, "head")
	require.ErrorContains(t, err, "run: chmod 700")
	require.NoError(t, os.Chmod(site.pool.Directory, 0o700))
	require.Len(t, listAll(t, site.open(t, "n1")).leases, 1)
}

func TestDerivedPoolsHoldNothing(t *testing.T) {
	p := newNodePool(t, "subnet = \"10.1.0.0/24\"\nnodes = \"n[1-4]\"\nper_node = 4")
	all, err := List(t.Context(), p, "head")
	require.NoError(t, err)
	require.Empty(t, all)
	freed, err := ReleaseNode(t.Context(), p, "prod", "n1", "head")
	require.NoError(t, err)
	require.Empty(t, freed)
}

// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAlienFilesAreReportedAndKept(t *testing.T) {
	site := newSite(t, "10.1.0.0/29") // .1 to .6
	s := site.open(t, "n1")
	mustAcquire(t, s, newClaim("7", "n1", "rail0"))
	block := s.joinPath("addresses", "10.1.0.0")
	aliens := []string{
		s.joinPath("addresses", "README"),
		s.joinPath("addresses", "10.1.0.7"),
		filepath.Join(block, "10.1.0.04"),
		filepath.Join(block, "10.2.0.4"),
		filepath.Join(block, "notes"),
		filepath.Join(block, "10.1.0.6"), // a file in an address's place
		s.joinPath("nodes", "n1", "prod,8"),
		s.joinPath("quarantine", "10.1.0.3,yesterday,02:00:00:00:00:05,n1"),
	}
	for _, path := range aliens {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	strange := filepath.Join(block, "10.1.0.5")
	require.NoError(t, os.MkdirAll(filepath.Join(strange, "prod,1,n1,rail0,-,1790000000"), 0o700))
	_, listErr := List(t.Context(), site.pool, "n2")
	_, sweepErr := s.Sweep(t.Context(), func(Owner) bool { return true })
	all := listErr.Error() + sweepErr.Error()
	for _, path := range append(aliens, strange) {
		require.Contains(t, all, path)
	}
	// A file in the place of an address keeps the address from being given.
	for _, job := range []string{"1", "2", "3"} {
		a := mustAcquire(t, s, newClaim(job, "n1", "rail0"))
		require.NotContains(t, []string{"10.1.0.5", "10.1.0.6"}, a.String())
	}
	_, err := s.Acquire(t.Context(), newClaim("4", "n1", "rail0"))
	require.ErrorIs(t, err, errFull)
	freed, err := ReleaseNode(t.Context(), site.pool, "prod", "n1", "n2")
	require.ErrorContains(t, err, aliens[6])
	require.NotContains(t, err.Error(), "\n", "the others may be of any node")
	require.Len(t, freed, 4)
	for _, path := range append(aliens, strange) {
		_, err := os.Lstat(path)
		require.NoError(t, err)
	}
}

func TestRecordOfAnotherSubnetIsGivenBack(t *testing.T) {
	s := newSite(t, "10.1.0.0/24").open(t, "n1")
	c := newClaim("7", "n1", "rail0")
	old := Lease{c.Owner, parseIP("192.0.2.1"), c.VF, time.Unix(1790000000, 0)}
	require.NoError(t, os.Link(s.selfPath(), s.recordPath(old)))
	require.NoError(t, os.MkdirAll(s.addressPath(old.Addr), 0o700))
	require.NoError(t, os.Link(s.selfPath(), s.leasePath(old)))
	require.True(t, s.usable.contains(mustAcquire(t, s, c)))
	require.Len(t, listAll(t, s).leases, 1)
}

func TestNamesThatAreNoNames(t *testing.T) {
	s := newSite(t, "10.1.0.0/24").open(t, "n1")
	for _, job := range []string{"", "..", "a/b", "a,b", "a b", ".hidden"} {
		_, err := s.Acquire(t.Context(), newClaim(job, "n1", "rail0"))
		require.ErrorContains(t, err, "cannot own an address")
	}
	c := newClaim("1", "n1", "rail0")
	c.VF = "../x"
	_, err := s.Acquire(t.Context(), c)
	require.ErrorContains(t, err, "not the PCI address")
	requireClean(t, s)
}

func TestDirectoryMustBeClosed(t *testing.T) {
	site := newSite(t, "10.1.0.0/24")
	dir := site.pool.Directory
	open := func() error { _, err := Open(t.Context(), site.pool, "n1", site.state+"/n1"); return err }
	require.NoError(t, os.Chmod(dir, 0o755))
	require.ErrorContains(t, open(), "run: chmod 700 "+dir)
	require.NoError(t, os.Chmod(dir, 0o700))
	require.NoError(t, os.Chown(dir, 1234, 0))
	require.ErrorContains(t, open(), "belongs to uid 1234, but what root creates there belongs to uid 0; run: chown 0 "+dir)
	require.NoError(t, os.Chown(dir, 0, 0))
	require.NoError(t, open())
	require.NoError(t, os.Chmod(site.state, 0o777))
	require.ErrorContains(t, open(), "is writable by others (mode 0777); run: chmod go-w "+site.state)
	require.NoError(t, os.Chmod(site.state, 0o700))
	require.NoError(t, os.Rename(dir, dir+".away"))
	require.ErrorContains(t, open(), "mount its file system, or create it once for all nodes: mkdir -m 700 "+dir)
	require.NoError(t, os.Symlink(dir+".away", dir))
	require.ErrorContains(t, open(), "not a directory")
}

// TestProbeOfSquashing: what a killed process left does not fail the next one, and pools that share a directory do not disturb
// each other.
func TestProbeOfSquashing(t *testing.T) {
	site := newSite(t, "10.1.0.0/24")
	dir, s := site.pool.Directory, site.open(t, "n1")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "who,n1,"+s.name), 0o700))
	require.NoError(t, s.checkSquashed(dir, 0))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "who,n1,another"), 0o700))
	require.NoError(t, s.checkSquashed(dir, 0))
	require.DirExists(t, filepath.Join(dir, "who,n1,another"))
	require.NoDirExists(t, filepath.Join(dir, "who,n1,"+s.name))
}

func TestOnlyTheCanonicalName(t *testing.T) {
	for _, bad := range []string{"10.1.0.03", "FD00::5", "fd00:0::5", "fe80::1%eth0", "10.1.0", ""} {
		_, ok := parseAddr(bad)
		require.False(t, ok, bad)
	}
	for _, bad := range []string{"", "..", ".x", "a/b", "a,b", "a\n", string(make([]byte, 3))} {
		require.False(t, isWord(bad), "%q", bad)
	}
	for _, good := range []string{"1", "run-12", "1234_5", "123+4", "node-7.cluster"} {
		require.True(t, isWord(good), good)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("prod,7,n1,rail0,0000:86:00.2,1790000000")
	f.Add("prod,7,rail0,10.1.0.3,-,1790000000")
	f.Add("10.1.0.3,1790000000,02:00:00:00:00:05,n1")
	f.Add("fd00::1,1,00:00:00:00:fe:80:00:00:00:00:00:00:02:00:5e:10:00:00:00:01,n1")
	f.Fuzz(func(t *testing.T, name string) {
		if l, ok := parseLeaseName(parseIP("10.1.0.3"), name); ok {
			require.Equal(t, name, formatLeaseName(l))
			require.Equal(t, name, filepath.Base(name), "one part of a path")
			again, ok := parseRecordName(l.Node, formatRecordName(l))
			require.True(t, ok)
			require.Equal(t, l, again)
		}
		if l, ok := parseRecordName("n1", name); ok {
			require.Equal(t, name, formatRecordName(l))
		}
		if q, ok := parseQuarantine(name); ok {
			require.Equal(t, name, formatQuarantineName(q))
			require.True(t, isMark(formatMarkName(q)))
			_, ok := parseLeaseName(q.Addr, formatMarkName(q))
			require.False(t, ok, "a mark is no lease")
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func (j *Jail) store() *Store { return &Store{filepath.Dir(j.dir)} }

// lease writes the lease of a node that asked some time after the last switch.
func (j *Jail) lease(t *testing.T, node string, after time.Duration, uses ...Use) *Lease {
	t.Helper()
	switched, err := j.lastSwitch()
	require.NoError(t, err)
	l := &Lease{Node: node, Asked: switched.Add(after), Uses: uses}
	require.NoError(t, j.store().WriteLease(l))
	return l
}

func TestLeaseIsReadAsItWasWritten(t *testing.T) {
	s := newStore(t)
	want := &Lease{Node: "n1", Cluster: "c", Asked: time.Now().UTC().Round(0), Uses: []Use{{"1", "job 17"}}, Current: map[string]string{"debian": "1.erofs"}, Unknown: []string{"why"}}
	for range 2 { // the second replaces the first
		require.NoError(t, s.WriteLease(want))
	}
	leases, damaged, err := s.Leases()
	require.NoError(t, err)
	assert.Empty(t, damaged)
	assert.Equal(t, []*Lease{want}, leases)
	entries, err := os.ReadDir(filepath.Join(s.dir, nodesDir))
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.Equal(t, "n1@c.json", entries[0].Name())
	jails, err := s.Jails()
	require.NoError(t, err)
	assert.Empty(t, jails)
	require.ErrorContains(t, s.WriteLease(&Lease{Node: "../n1"}), `invalid name of a node: "../n1"`)
}

func TestLeasesAreHostileInput(t *testing.T) {
	s := newStore(t)
	dir := filepath.Join(s.dir, nodesDir)
	require.NoError(t, os.Mkdir(dir, 0o755))
	put := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o644))
	}
	put("other", `{"node":"n1"}`)
	put("cut", `{"node":"cut"`)
	put("large", `{"node":"large","uses":[`+strings.Repeat(" ", leaseMax)+`]}`)
	put("many", `{"node":"many","unknown":["x"`+strings.Repeat(`,"x"`, listMax)+`]}`)
	put("version", `{"node":"version","uses":[{"version":"../1"}]}`)
	put("long", `{"node":"long","uses":[{"version":"1","by":"`+strings.Repeat("x", wordMax+1)+`"}]}`)
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo.json"), 0o644))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link.json")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir.json"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".new-1"), nil, 0o644)) // half-written
	leases, damaged, err := s.Leases()
	require.NoError(t, err)
	assert.Empty(t, leases)
	assert.Len(t, damaged, 9)
	all := strings.Join(damaged, "\n")
	for _, want := range []string{`other.json: is damaged: it is of node "n1"`, "cut.json: is damaged: unexpected end", "large.json: is longer than", "many.json: is damaged: a list has more than",
		`version.json: is damaged: invalid version "../1"`, "long.json: is damaged: invalid text", "fifo.json: is not a regular file", "link.json: too many levels of symbolic links", "dir.json: is not a regular file"} {
		assert.Contains(t, all, want)
	}
	u, err := s.Survey(Cluster{}, DefaultExpiry)
	require.NoError(t, err)
	assert.Len(t, u.doubts, 9, "what is damaged may use any version")

	require.NoError(t, os.Chmod(dir, 0o777))
	_, err = s.Survey(Cluster{}, DefaultExpiry)
	require.ErrorContains(t, err, "is not a directory that only its owner may write to")
}

func TestTidy(t *testing.T) {
	s := newStore(t)
	now := time.Now()
	for node, age := range map[string]time.Duration{"new": 0, "old": 25 * time.Hour, "up": 25 * time.Hour, "back": 25 * time.Hour} {
		require.NoError(t, s.WriteLease(&Lease{Node: node, Asked: now.Add(-age)}))
	}
	left := filepath.Join(s.dir, nodesDir, ".new-1")
	for _, path := range []string{left, left + "2"} {
		require.NoError(t, os.WriteFile(path, nil, 0o644))
	}
	require.NoError(t, os.Chtimes(left, now, now.Add(-25*time.Hour)))
	u, err := s.Survey(Cluster{Nodes: []Node{{Name: "up"}}}, DefaultExpiry)
	require.NoError(t, err)
	require.NoError(t, s.WriteLease(&Lease{Node: "back", Asked: now}), "after the survey")
	require.NoError(t, s.Tidy(u, DefaultExpiry))
	names, err := filepath.Glob(filepath.Join(s.dir, nodesDir, "[^.]*"))
	require.NoError(t, err)
	hidden, err := filepath.Glob(filepath.Join(s.dir, nodesDir, ".new-*"))
	require.NoError(t, err)
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	assert.Equal(t, []string{"back.json", "new.json", "up.json"}, names)
	assert.Equal(t, []string{left + "2"}, hidden)
}

func FuzzParseLease(f *testing.F) {
	f.Add("n1.json", []byte(`{"node":"n1","asked":"2026-11-24T16:00:00Z","uses":[{"version":"1","by":"job 1"}],"current":{"a":"b"},"unknown":["x"]}`))
	f.Add("n1@c.json", []byte(`{"node":"n1","cluster":"c"}`))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		l, err := parseLease(name, text)
		if err != nil {
			return
		}
		if err := l.check(); err != nil || strings.ContainsAny(l.file(), "/\x00") {
			t.Fatal("accepted: ", l, err)
		}
		again, err := json.Marshal(l)
		if err == nil && len(again) <= leaseMax {
			if _, err = parseLease(name, bytes.TrimSpace(again)); err != nil && l.Asked.Year() < 9999 {
				t.Fatal("not read again: ", err)
			}
		}
	})
}

func TestRefusal(t *testing.T) {
	ctx := context.Background()
	up := func(names ...string) (nodes []Node) {
		for _, name := range names {
			nodes = append(nodes, Node{Name: name})
		}
		return nodes
	}
	old := -DefaultExpiry - time.Hour
	for name, test := range map[string]struct {
		nodes []Node
		write func(*testing.T, *Jail)
		want  string // "": not in use
	}{
		"nothing is known": {nil, func(*testing.T, *Jail) {}, "no node has ever written a lease"},
		"nobody uses it": {up("n1", "n2"), func(t *testing.T, j *Jail) {
			j.lease(t, "n1", 2*time.Second)
			j.lease(t, "n2", 2*time.Second, Use{"2", "job 1"})
		}, ""},
		"one node has no lease": {up("n1", "n2"), func(t *testing.T, j *Jail) { j.lease(t, "n1", 2*time.Second) }, "node n2 has never written a lease; run gojail sweep there"},
		"it is off":             {[]Node{{Name: "n1"}, {Name: "n2", Off: true}}, func(t *testing.T, j *Jail) { j.lease(t, "n1", 2*time.Second) }, ""},
		"in use": {up("n1"), func(t *testing.T, j *Jail) {
			j.lease(t, "n1", 2*time.Second, Use{"1", "job 1"}, Use{"1", "template of jail a"})
		}, "in use on n1 (job 1, template of jail a)"},
		"in use on a node that Slurm does not know": {up("n1"), func(t *testing.T, j *Jail) { j.lease(t, "n1", 2*time.Second); j.lease(t, "n3", 0, Use{"1", "job 1"}) }, "in use on n3 (job 1)"},
		"asked before the switch":                   {up("n1"), func(t *testing.T, j *Jail) { j.lease(t, "n1", 0) }, "node n1 has not written a lease since the last switch; wait, or run gojail sweep there"},
		"the node sees no switch": {up("n1"), func(t *testing.T, j *Jail) {
			l := j.lease(t, "n1", 2*time.Second)
			l.Current = map[string]string{"debian": "1"}
			require.NoError(t, j.store().WriteLease(l))
		}, "in use on n1 (has not seen the switch yet)"},
		"unknown": {up("n1"), func(t *testing.T, j *Jail) {
			l := j.lease(t, "n1", 2*time.Second)
			l.Unknown = []string{"job 5: why"}
			require.NoError(t, j.store().WriteLease(l))
		}, "cannot determine whether it is in use: node n1: job 5: why"},
		"expired, gone":         {nil, func(t *testing.T, j *Jail) { j.lease(t, "n1", old, Use{"1", "job 1"}); j.lease(t, "n2", 2*time.Second) }, ""},
		"expired, down":         {[]Node{{Name: "n1", Down: true}}, func(t *testing.T, j *Jail) { j.lease(t, "n1", old, Use{"1", "job 1"}) }, ""},
		"expired, in use, up":   {up("n1"), func(t *testing.T, j *Jail) { j.lease(t, "n1", old, Use{"1", "job 1"}) }, "in use on n1 (job 1)"},
		"expired, up":           {up("n1"), func(t *testing.T, j *Jail) { j.lease(t, "n1", old) }, "node n1 is up and has not written a lease for 25h0m0s"},
		"a clock that is ahead": {up("n1"), func(t *testing.T, j *Jail) { j.lease(t, "n1", time.Hour) }, "node n1: its clock is "},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJail(t)
			j.mustPublish(t, "1", "2")
			for _, id := range []string{"1", "2"} {
				_, err := j.SwitchTo(ctx, id, "me")
				require.NoError(t, err)
			}
			test.write(t, j)
			v, err := j.Version("1")
			require.NoError(t, err)
			u, err := j.store().Survey(Cluster{Nodes: test.nodes}, DefaultExpiry)
			require.NoError(t, err)
			u.margin = clockResolution // also where the tests' directory is on a network
			if err = u.Refuse(j, v); test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
		})
	}
}

// TestSurveyOfTwoClusters: the nodes of two clusters have the same names, and cluster a is asked.
func TestSurveyOfTwoClusters(t *testing.T) {
	ctx := context.Background()
	const old = DefaultExpiry + time.Hour
	for name, test := range map[string]struct {
		node   Node
		leases map[string]time.Duration // by cluster, the age of the lease of n1
		want   string
	}{
		"the other one's lease is not this one's": {Node{Name: "n1"}, map[string]time.Duration{"b": 0}, "node n1 has never written a lease; run gojail sweep there"},
		"the node is down in this one alone":      {Node{Name: "n1", Down: true}, map[string]time.Duration{"a": old, "b": 0}, "in use on n1@b (job 1)"},
		"the cluster was renamed":                 {Node{Name: "n1"}, map[string]time.Duration{"a": 0, "b": old}, ""},
		"slurm.conf was missing once":             {Node{Name: "n1"}, map[string]time.Duration{"a": 0, "": old}, ""},
		"both are up":                             {Node{Name: "n1"}, map[string]time.Duration{"a": 0, "b": 0}, "in use on n1@b (job 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJail(t)
			j.mustPublish(t, "1", "2")
			_, err := j.SwitchTo(ctx, "2", "me")
			require.NoError(t, err)
			for cluster, age := range test.leases {
				l := &Lease{Node: "n1", Cluster: cluster, Asked: time.Now().Add(2*time.Second - age)}
				if cluster == "b" && test.want != "" && len(test.leases) > 1 {
					l.Uses = []Use{{"1", "job 1"}}
				}
				require.NoError(t, j.store().WriteLease(l))
			}
			v, err := j.Version("1")
			require.NoError(t, err)
			u, err := j.store().Survey(Cluster{"a", []Node{test.node}}, DefaultExpiry)
			require.NoError(t, err)
			u.margin = clockResolution // also where the tests' directory is on a network
			if err = u.Refuse(j, v); test.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.want)
			}
			require.NoError(t, j.store().Tidy(u, DefaultExpiry))
			for cluster, age := range test.leases {
				_, err := os.Stat(filepath.Join(j.store().dir, nodesDir, (&Lease{Node: "n1", Cluster: cluster}).file()))
				assert.Equal(t, age == 0, err == nil, "cluster %q", cluster)
			}
		})
	}
}

func TestCollect(t *testing.T) {
	j := newJail(t)
	ctx := context.Background()
	var ids []string
	for i := range 8 {
		ids = append(ids, fmt.Sprint(i))
	}
	j.mustPublish(t, ids...)
	for _, id := range []string{"0", "3", "2", "5"} {
		_, err := j.SwitchTo(ctx, id, "me")
		require.NoError(t, err)
	}
	j.lease(t, "n1", 2*time.Second, Use{"4", "job 7"})
	survey := func() (*Survey, error) {
		u, err := j.store().Survey(Cluster{}, DefaultExpiry)
		if err == nil {
			u.margin = clockResolution
		}
		return u, err
	}
	collect := func(keep int) string {
		list, err := j.Collect(ctx, keep, survey)
		require.NoError(t, err)
		var words []string
		for _, c := range list {
			if c.Removed {
				words = append(words, c.Version)
			} else {
				words = append(words, c.Version+": "+c.Why)
			}
		}
		return strings.Join(words, "\n")
	}
	const rollback, fresh = ": kept for a rollback (--keep)", ": it is newer than the current one, and was not in use yet"
	assert.Equal(t, "0\n1\n2"+rollback+"\n3"+rollback+"\n4: in use on n1 (job 7)\n6"+fresh+"\n7"+fresh, collect(2), "2 and 3 were current last")
	assert.Equal(t, "2 3 4 [5] 6 7", j.state(t))
	j.mustBeClean(t)
	assert.Equal(t, "2"+rollback+"\n3"+rollback+"\n4: in use on n1 (job 7)\n6"+fresh+"\n7"+fresh, collect(2))
	assert.Equal(t, "2\n3\n4: in use on n1 (job 7)\n6"+fresh+"\n7"+fresh, collect(0))
	j.lease(t, "n1", 0)
	_, err := j.SwitchTo(ctx, "7", "me")
	require.NoError(t, err)
	assert.Contains(t, collect(0), "5: cannot determine whether it is in use: node n1 has not written a lease since the last switch", "it may have begun with any version")
	j.lease(t, "n1", 2*time.Second)
	assert.Equal(t, "4\n5\n6", collect(0), "6 was passed over")
	assert.Equal(t, "[7]", j.state(t))
	j.mustBeClean(t)
}

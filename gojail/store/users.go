// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/storage"
)

// DefaultExpiry is the age at which a lease expires.
const DefaultExpiry = 24 * time.Hour

// clockResolution is the resolution of the times of files on the storage.
const clockResolution = time.Second

// clockMargin is the maximum difference between the clocks of nodes: munge accepts five minutes.
const clockMargin = 5 * time.Minute

// Node is a node that Slurm knows.
type Node struct {
	Name string
	Off  bool // the node is powered off, and runs nothing
	Down bool // the node does not answer slurmctld
}

// Cluster is the name of one Slurm, and the nodes that it knows. Several clusters may share a store, and names of
// nodes.
type Cluster struct {
	Name  string
	Nodes []Node
}

// Survey is the answer of all leases to the question which versions are in use.
type Survey struct {
	cluster string   // name of the cluster whose nodes are known, or ""
	leases  []*Lease // all but those of nodes that are gone
	gone    []*Lease // expired leases of nodes that are off, down or unknown to Slurm
	doubts  []string // reasons why any version may be in use
	margin  time.Duration
	checked time.Time
}

// Survey reads the leases of all nodes. Each node of the cluster must have a lease. Leases of other clusters, and of
// this one under an earlier name, count as those of nodes that Slurm does not know.
func (s *Store) Survey(c Cluster, expiry time.Duration) (*Survey, error) {
	leases, damaged, err := s.Leases()
	if err != nil {
		return nil, err
	}
	u := &Survey{cluster: c.Name, checked: time.Now(), doubts: damaged}
	if u.margin, err = s.measureClockMargin(); err != nil {
		return nil, err
	}
	states := map[string]Node{}
	for _, n := range c.Nodes {
		states[n.Name] = n
	}
	has := map[string]bool{}
	for _, l := range leases {
		n, known := states[l.Node]
		if known = known && l.Cluster == c.Name; known {
			has[l.Node] = true
		}
		switch age := u.checked.Sub(l.Asked); {
		case age < -u.margin-time.Minute:
			u.doubts = append(u.doubts, fmt.Sprintf("node %s: its clock is %v ahead of this machine's", u.nameNode(l),
				-age.Round(time.Second)))
		case age <= expiry:
			u.leases = append(u.leases, l)
		case known && !n.Off && !n.Down:
			u.leases = append(u.leases, l)
			u.doubts = append(u.doubts,
				fmt.Sprintf("node %s is up and has not written a lease for %v; run gojail sweep there", l.Node,
					age.Round(time.Minute)))
		default:
			u.gone = append(u.gone, l)
		}
	}
	for _, n := range c.Nodes {
		if !has[n.Name] && !n.Off {
			u.doubts = append(u.doubts, fmt.Sprintf("node %s has never written a lease; run gojail sweep there",
				n.Name))
		}
	}
	if len(leases)+len(damaged)+len(c.Nodes) == 0 {
		u.doubts = append(u.doubts, "no node has ever written a lease; run gojail sweep on the nodes")
	}
	return u, nil
}

// measureClockMargin returns how much the times in leases and on the storage may differ from those of this machine.
func (s *Store) measureClockMargin() (time.Duration, error) {
	dir, err := unix.Open(s.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("cannot open the store: %w", err)
	}
	defer unix.Close(dir)
	m, err := storage.MountOf(dir)
	if err == nil && m != nil && slices.Contains([]string{"ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs"}, m.Type) {
		return clockResolution, nil // only this node mounts it, so there is one clock
	}
	return clockMargin, nil
}

// nameNode returns the name of a lease's node, with its cluster if that is not the survey's.
func (u *Survey) nameNode(l *Lease) string {
	if u.cluster == "" || l.Cluster == "" || l.Cluster == u.cluster {
		return l.Node
	}
	return l.Node + "@" + l.Cluster
}

// Users returns one text for each node that uses a version, for people.
func (u *Survey) Users(v *Version) []string {
	return u.listUsers(v, func(*Lease) string { return "" })
}

// DatedUsers returns the same texts as Users, with the time of each node's lease: later jobs are missing in it.
func (u *Survey) DatedUsers(v *Version) []string {
	return u.listUsers(v, func(l *Lease) string { return ", as of " + l.Asked.Local().Format(time.DateTime) })
}

func (u *Survey) listUsers(v *Version, more func(*Lease) string) (list []string) {
	for _, l := range u.leases {
		if words := l.listUses(v); len(words) > 0 {
			list = append(list, u.nameNode(l)+" ("+strings.Join(words, ", ")+")"+more(l))
		}
	}
	slices.Sort(list)
	return list
}

// Count returns the numbers of nodes and jobs that use a version.
func (u *Survey) Count(v *Version) (nodes, jobs int) {
	for _, l := range u.leases {
		used := false
		for _, use := range l.Uses {
			if use.Version == v.Version {
				used = true
				if strings.HasPrefix(use.By, "job ") {
					jobs++
				}
			}
		}
		if used {
			nodes++
		}
	}
	return nodes, jobs
}

// usesMost is the maximum number of uses on one node that are named.
const usesMost = 5

// listUses returns the uses of a version on a node, such as "job 17".
func (l *Lease) listUses(v *Version) (words []string) {
	for _, use := range l.Uses {
		if use.Version == v.Version && !slices.Contains(words, use.By) {
			words = append(words, use.By)
		}
	}
	if more := len(words) - usesMost; more > 0 {
		words = append(words[:usesMost], fmt.Sprintf("%d more", more))
	}
	return words
}

// findUses returns the nodes that use a version that is not current. If there are none, it returns the reasons why the
// version may still be in use. The caller holds the jail's lock, so that the version does not become current.
//
// A node cannot begin to use the version if its lease is newer than the last switch and does not have the version as
// the current one. A node with an older lease may have begun to use it after the lease was made.
func (u *Survey) findUses(j *Jail, v *Version) (used, doubts []string) {
	used = u.Users(v)
	for _, l := range u.leases {
		if l.Current[j.Name] == v.file {
			used = append(used, u.nameNode(l)+" (has not seen the switch yet)")
		}
	}
	if len(used) > 0 {
		return used, nil
	}
	doubts = append(doubts, u.doubts...)
	switched, err := j.lastSwitch()
	if err != nil {
		doubts = append(doubts, err.Error())
	}
	since := switched.Add(u.margin)
	for _, l := range u.leases {
		for _, why := range l.Unknown {
			doubts = append(doubts, fmt.Sprintf("node %s: %s", u.nameNode(l), why))
		}
		if !l.Asked.After(since) {
			doubts = append(doubts,
				fmt.Sprintf("node %s has not written a lease since the last switch%s; wait, or run gojail sweep there",
					u.nameNode(l), u.describeMargin()))
		}
	}
	return nil, doubts
}

// lastSwitch returns the time of the last change of the link to the current version, or a slightly later one.
func (j *Jail) lastSwitch() (last time.Time, err error) {
	for _, path := range []string{j.dir, j.path(currentLink)} { // a rename changes the directory's time
		var st unix.Stat_t
		switch err := unix.Lstat(path, &st); {
		case err == unix.ENOENT && path != j.dir:
		case err != nil:
			return last, fmt.Errorf("%s: %w", path, err)
		default:
			for _, t := range []unix.Timespec{st.Mtim, st.Ctim} {
				if at := time.Unix(t.Unix()); at.After(last) {
					last = at
				}
			}
		}
	}
	return last, nil
}

// describeMargin returns the margin for clocks as a part of an error, or "" if there is one clock.
func (u *Survey) describeMargin() string {
	if u.margin <= clockResolution {
		return ""
	}
	return fmt.Sprintf(" and the %v for clocks that differ", u.margin)
}

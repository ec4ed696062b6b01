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

// DefaultExpiry is how old a lease may be before its node counts as gone.
const DefaultExpiry = 24 * time.Hour

// clockResolution is that of times on the storage.
const clockResolution = time.Second

// clockMargin is how much the clocks of nodes may differ: munge accepts five minutes.
const clockMargin = 5 * time.Minute

// Node is a node that Slurm knows.
type Node struct {
	Name string
	Off  bool // it is switched off, and runs nothing
	Down bool // Slurm does not reach it
}

// Survey is who uses the versions of a store.
type Survey struct {
	leases  []*Lease // without those of nodes that are gone
	gone    []*Lease // expired, and Slurm does not say that the node is there
	doubts  []string // what may use any version
	clocks  time.Duration
	checked time.Time
}

// Survey reads the leases of all nodes. nodes are those that must have one.
func (s *Store) Survey(nodes []Node, expiry time.Duration) (*Survey, error) {
	leases, damaged, err := s.Leases()
	if err != nil {
		return nil, err
	}
	u := &Survey{checked: time.Now(), doubts: damaged}
	if u.clocks, err = s.clockMargin(); err != nil {
		return nil, err
	}
	states := map[string]Node{}
	for _, n := range nodes {
		states[n.Name] = n
	}
	has := map[string]bool{}
	for _, l := range leases {
		has[l.Node] = true
		n, known := states[l.Node]
		switch age := u.checked.Sub(l.Asked); {
		case age < -u.clocks-time.Minute:
			u.doubts = append(u.doubts, fmt.Sprintf("node %s: its clock is %v ahead of this machine's", l.Node, -age.Round(time.Second)))
		case age <= expiry:
			u.leases = append(u.leases, l)
		case known && !n.Off && !n.Down:
			u.leases = append(u.leases, l)
			u.doubts = append(u.doubts, fmt.Sprintf("node %s is up and has not said what it uses for %v; run gojail sweep there", l.Node, age.Round(time.Minute)))
		default:
			u.gone = append(u.gone, l)
		}
	}
	for _, n := range nodes {
		if !has[n.Name] && !n.Off {
			u.doubts = append(u.doubts, fmt.Sprintf("node %s has never said what it uses; run gojail sweep there", n.Name))
		}
	}
	if len(leases)+len(damaged)+len(nodes) == 0 {
		u.doubts = append(u.doubts, "no node has ever said what it uses; run gojail sweep on the nodes")
	}
	return u, nil
}

// clockMargin returns how much the times in leases and on the storage may differ from those of this machine.
func (s *Store) clockMargin() (time.Duration, error) {
	dir, err := unix.Open(s.dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("cannot open the store: %w", err)
	}
	defer unix.Close(dir)
	m, err := storage.MountOf(dir)
	if err == nil && m != nil && slices.Contains([]string{"ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs"}, m.Type) {
		return clockResolution, nil // this node's alone
	}
	return clockMargin, nil
}

// Users returns the uses of a version, for people: node by node.
func (u *Survey) Users(v *Version) (list []string) {
	for _, l := range u.leases {
		if words := l.words(v); len(words) > 0 {
			list = append(list, l.Node+" ("+strings.Join(words, ", ")+")")
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

// wordsMost is the number of uses on one node that are named.
const wordsMost = 5

// words returns what a node uses a version for.
func (l *Lease) words(v *Version) (words []string) {
	for _, use := range l.Uses {
		if use.Version == v.Version && !slices.Contains(words, use.By) {
			words = append(words, use.By)
		}
	}
	if more := len(words) - wordsMost; more > 0 {
		words = append(words[:wordsMost], fmt.Sprintf("%d more", more))
	}
	return words
}

// judge returns who uses a version that is not current, and else why that cannot be told. The caller holds the
// jail's lock, so that the version does not become current.
//
// A node that said after the last switch what it uses, and sees the version no longer as current, cannot begin to use
// it. Of an older lease the reverse is not known: the node may have begun since.
func (u *Survey) judge(j *Jail, v *Version) (used, doubts []string) {
	used = u.Users(v)
	for _, l := range u.leases {
		if l.Current[j.Name] == v.file {
			used = append(used, l.Node+" (sees no switch yet)")
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
	since := switched.Add(u.clocks)
	for _, l := range u.leases {
		for _, why := range l.Unknown {
			doubts = append(doubts, fmt.Sprintf("node %s: %s", l.Node, why))
		}
		if !l.Asked.After(since) {
			doubts = append(doubts, fmt.Sprintf("node %s has not said what it uses since the last switch%s; wait, or run gojail sweep there", l.Node, u.describeMargin()))
		}
	}
	return nil, doubts
}

// lastSwitch returns when the link to the current version changed last, or a little later.
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

func (u *Survey) describeMargin() string {
	if u.clocks <= clockResolution {
		return ""
	}
	return fmt.Sprintf(" and the %v for clocks that differ", u.clocks)
}

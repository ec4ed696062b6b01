// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/gojail/gojail/netsetup/config"
)

// Contents are the leases and quarantines in the directory of a shared pool, by address.
type Contents struct {
	Leases     []Lease
	Quarantine []Quarantined
}

// List returns the leases of all nodes and clusters in a pool, and the addresses in quarantine; node is the name of
// this node. The error reports files that gojail did not write, one line each, in addition to the valid ones. A derived
// pool has no leases.
func List(ctx context.Context, p *config.Pool, node string) (Contents, error) {
	if p.Directory == "" {
		return Contents{}, nil
	}
	s := &shared{name: p.Name, root: filepath.Join(p.Directory, p.Name), node: node, now: time.Now}
	all, err := waitForAnswer(ctx, s, "list the leases", func() (list, error) {
		if err := s.checkDirectory(p.Directory); err != nil {
			return list{}, err
		}
		return s.readAll(ctx)
	})
	return Contents{all.leases, all.quarantine}, errors.Join(err, all.aliens)
}

// readAll returns all leases, and the quarantines that are not over.
func (s *shared) readAll(ctx context.Context) (list, error) {
	return retryStale(func() (list, error) {
		all, err := s.readLeases(ctx)
		if err != nil {
			return list{}, err
		}
		quarantine, aliens, err := s.readQuarantine()
		all.quarantine = slices.DeleteFunc(quarantine, func(q Quarantined) bool { return s.now().After(q.Until()) })
		all.aliens = errors.Join(all.aliens, aliens)
		return all, err
	})
}

// ReleaseNode releases the leases that a node of a cluster has in a pool, and returns them; node is the name of this
// node. The other node must be gone, because it alone knows which of its jobs are running: a lease that it makes
// meanwhile may stay. ReleaseNode takes no lock, because each removal is by a name that no other lease can have.
func ReleaseNode(ctx context.Context, p *config.Pool, cluster, gone, node string) ([]Lease, error) {
	if p.Directory == "" {
		return nil, nil
	}
	if !isWord(cluster) || !isWord(gone) {
		return nil,
			fmt.Errorf(
				"pool %s: no lease can be of cluster %q and node %q: the names may hold letters, digits and ._+- only",
				p.Name, cluster, gone)
	}
	s := &shared{name: p.Name, root: filepath.Join(p.Directory, p.Name), node: node, now: time.Now}
	freed, err := waitForAnswer(ctx, s, "release the leases of "+gone, func() (list, error) {
		if err := s.checkDirectory(p.Directory); err != nil {
			return list{}, err
		}
		return s.releaseNode(ctx, cluster, gone)
	})
	return freed.leases, errors.Join(err, freed.aliens)
}

// releaseNode releases the leases in a node's records, and then leases whose record is lost. It reports files that
// gojail did not write only if they are among the records: the others may belong to any node.
func (s *shared) releaseNode(ctx context.Context, cluster, gone string) (list, error) {
	recorded, err := retryStale(func() (list, error) { return s.readNode(gone) })
	if err != nil {
		return list{}, err
	}
	freed := list{aliens: recorded.aliens}
	release := func(leases []Lease) error {
		for _, l := range leases {
			if l.Cluster != cluster || l.Node != gone {
				continue
			}
			if _, err := retryStale(func() (struct{}, error) { return struct{}{}, s.freeLease(l) }); err != nil {
				return err
			}
			freed.leases = append(freed.leases, l)
		}
		return nil
	}
	if err := release(recorded.leases); err != nil {
		return freed, err
	}
	left, err := retryStale(func() (list, error) { return s.readLeases(ctx) })
	if err != nil {
		return freed, err
	}
	return freed, release(left.leases)
}

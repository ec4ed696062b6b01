// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gojail/gojail/netsetup/fabric"
)

// isPartitioned reports whether UFM manages the partition of the VF.
func (e *entry) isPartitioned() bool { return e.UFM }

// joinPartition makes the VF a member of the rail's partition and of no other. A node that was reset before it could
// remove memberships leaves them in UFM, and the VF would reach the network of an earlier job.
func (r *rail) joinPartition(ctx context.Context) error {
	guid, err := r.findGUID()
	if err != nil {
		return err
	}
	queue, client, err := r.site.openUFM()
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, r.site.ufmTimeout())
	defer cancel()
	err = r.makeOnlyMember(short, queue, client, guid)
	if errors.Is(err, fabric.ErrUnreachable) {
		return r.continueWithoutUFM(ctx, queue, guid, err)
	}
	return err
}

// makeOnlyMember makes the VF a member of the rail's partition, and then removes it from all others that UFM lists. The
// same list shows whether UFM has done what it accepted.
func (r *rail) makeOnlyMember(ctx context.Context, queue *fabric.Queue, client *fabric.Client, guid fabric.GUID) error {
	pkey := r.entry.PKey
	if !fabric.IsDefault(pkey) {
		if err := queue.Do(ctx, client, fabric.Add, pkey, guid); err != nil {
			return err
		}
	}
	members, err := client.ListMembers(ctx)
	if err != nil {
		return err
	}
	for other, guids := range members {
		if other == pkey || fabric.IsDefault(other) || !slices.Contains(guids, guid) {
			continue
		}
		if err := queue.Do(ctx, client, fabric.Remove, other, guid); err != nil {
			return fmt.Errorf("remove it from partition 0x%04x: %w", other, err)
		}
	}
	if !fabric.IsDefault(pkey) && !slices.Contains(members[pkey], guid) {
		return fmt.Errorf("UFM accepted GUID %s for partition 0x%04x, but does not list it there; check UFM's log",
			guid, pkey)
	}
	return nil
}

// continueWithoutUFM returns nil although UFM is unreachable, if the site permits it and the queue holds no call about
// another partition of the VF.
func (r *rail) continueWithoutUFM(ctx context.Context, queue *fabric.Queue, guid fabric.GUID, away error) error {
	if r.site.Config.UFM.Required {
		return away
	}
	waiting, err := queue.ListEntries(ctx)
	if err != nil {
		return err
	}
	for _, e := range waiting {
		if e.GUID == guid && e.PKey != r.entry.PKey {
			return fmt.Errorf("it may still be in partition 0x%04x of another job: %w", e.PKey, away)
		}
	}
	return nil
}

// leavePartition removes the VF from the rail's partition. If UFM does not answer, it succeeds once the queue holds the
// call, which the sweep sends again.
func (r *rail) leavePartition(ctx context.Context) error {
	if fabric.IsDefault(r.entry.PKey) {
		return nil
	}
	guid, err := r.findGUID()
	if err != nil {
		return err
	}
	queue, client, err := r.site.openUFM()
	if err != nil {
		return err
	}
	// network.toml no longer has [ufm]: the call waits in the queue until it has it again.
	if client == nil {
		return queue.Put(ctx, fabric.Remove, r.entry.PKey, guid)
	}
	ctx, cancel := context.WithTimeout(ctx, r.site.ufmTimeout())
	defer cancel()
	if err := queue.Do(ctx, client, fabric.Remove, r.entry.PKey, guid); !errors.Is(err, fabric.ErrQueued) {
		return err
	}
	return nil
}

// findGUID returns the GUID by which UFM knows the VF, from the journal.
func (r *rail) findGUID() (fabric.GUID, error) {
	guid := r.entry.Original.Knobs.PortGUID
	if guid == nil || *guid == 0 {
		return 0, errors.New("the VF has no GUID; run: gojail vf apply")
	}
	return fabric.GUID(*guid), nil
}

// openUFM opens the queue, and the client of UFM if network.toml has [ufm].
func (s *Site) openUFM() (*fabric.Queue, *fabric.Client, error) {
	queue, err := fabric.OpenQueue(s.Queue)
	if err != nil || s.Config == nil || s.Config.UFM == nil {
		return queue, nil, err
	}
	u := s.Config.UFM
	client, err := fabric.Open(fabric.Config{URL: u.URL, Credentials: u.Credentials, CA: u.CA})
	return queue, client, err
}

// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gojail/gojail/netsetup/fabric"
)

func (e *entry) partitioned() bool { return e.UFM }

// joinPartition has UFM put the VF into the rail's partition, and no other: UFM
// does not forget what a node that was reset could not tell it.
func (r *rail) joinPartition(ctx context.Context) error {
	guid, err := r.guid()
	if err != nil {
		return err
	}
	queue, client, err := r.site.ufm()
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, r.site.ufmTime())
	defer cancel()
	err = r.onlyMember(short, queue, client, guid)
	if errors.Is(err, fabric.ErrAway) {
		return r.withoutUFM(ctx, queue, guid, err)
	}
	return err
}

func (r *rail) onlyMember(ctx context.Context, queue *fabric.Queue, client *fabric.Client, guid fabric.GUID) error {
	pkey := r.entry.PKey
	if !fabric.Default(pkey) {
		if err := queue.Do(ctx, client, fabric.Add, pkey, guid); err != nil {
			return err
		}
	}
	members, err := client.Members(ctx)
	if err != nil {
		return err
	}
	for other, guids := range members {
		if other == pkey || fabric.Default(other) || !slices.Contains(guids, guid) {
			continue
		}
		if err := queue.Do(ctx, client, fabric.Remove, other, guid); err != nil {
			return fmt.Errorf("take it out of partition 0x%04x: %w", other, err)
		}
	}
	if !fabric.Default(pkey) && !slices.Contains(members[pkey], guid) {
		return fmt.Errorf("UFM has taken GUID %s for partition 0x%04x, but does not list it there; look at UFM's log", guid, pkey)
	}
	return nil
}

// withoutUFM goes on while UFM is away, if the site wants that and the VF is not
// known to be in another partition.
func (r *rail) withoutUFM(ctx context.Context, queue *fabric.Queue, guid fabric.GUID, away error) error {
	if r.site.Config.UFM.Required {
		return away
	}
	waiting, err := queue.List(ctx)
	if err != nil {
		return err
	}
	for _, e := range waiting {
		if e.GUID == guid && e.PKey != r.entry.PKey {
			return fmt.Errorf("it may be in partition 0x%04x of another job still: %w", e.PKey, away)
		}
	}
	return nil
}

// leavePartition is done when the queue has it.
func (r *rail) leavePartition(ctx context.Context) error {
	if fabric.Default(r.entry.PKey) {
		return nil
	}
	guid, err := r.guid()
	if err != nil {
		return err
	}
	queue, client, err := r.site.ufm()
	if err != nil {
		return err
	}
	if client == nil {
		return queue.Put(ctx, fabric.Remove, r.entry.PKey, guid)
	}
	ctx, cancel := context.WithTimeout(ctx, r.site.ufmTime())
	defer cancel()
	if err := queue.Do(ctx, client, fabric.Remove, r.entry.PKey, guid); !errors.Is(err, fabric.ErrQueued) {
		return err
	}
	return nil
}

func (r *rail) guid() (fabric.GUID, error) {
	guid := r.entry.Original.Knobs.PortGUID
	if guid == nil || *guid == 0 {
		return 0, errors.New("the VF has no GUID; run: gojail vf apply")
	}
	return fabric.GUID(*guid), nil
}

// ufm opens the queue, and UFM where network.toml names one.
func (s *Site) ufm() (*fabric.Queue, *fabric.Client, error) {
	queue, err := fabric.OpenQueue(s.Queue)
	if err != nil || s.Config == nil || s.Config.UFM == nil {
		return queue, nil, err
	}
	u := s.Config.UFM
	client, err := fabric.Open(fabric.Config{URL: u.URL, Credentials: u.Credentials, CA: u.CA})
	return queue, client, err
}

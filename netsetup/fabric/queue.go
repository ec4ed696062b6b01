// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gojail/gojail/internal/trusted"
	"github.com/gojail/gojail/internal/wholefile"
)

// ErrQueued means that UFM has not taken a call yet, and that the queue keeps it.
var ErrQueued = errors.New("it is kept in the queue until UFM is back")

// Op is what is to happen to a GUID.
type Op string

// The operations.
const (
	Add    Op = "add"
	Remove Op = "remove"
)

// Entry is what a GUID is to be in a partition, and not known to be.
type Entry struct {
	Op   Op
	PKey uint16
	GUID GUID
	Seq  uint64 // entries are sent in this order
	Time time.Time
}

// Queue is a directory with what UFM has not confirmed.
type Queue struct{ dir string }

// OpenQueue opens a queue of this node, and makes the directory where only the last
// part of its path is missing.
func OpenQueue(dir string) (*Queue, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("UFM's queue: cannot make %s: %w", dir, errors.Unwrap(err))
	}
	q := &Queue{dir}
	if err := trusted.Parents(q.lockPath()); err != nil {
		return nil, fmt.Errorf("UFM's queue: %w", err)
	}
	return q, nil
}

// Put keeps a call for each GUID, in the place of any older one for it.
func (q *Queue) Put(ctx context.Context, op Op, pkey uint16, guids ...GUID) error {
	if Default(pkey) {
		return nil
	}
	if err := checkCall(pkey, guids); err != nil {
		return err
	}
	err := q.locked(ctx, func() error {
		entries, _, err := q.read()
		if err != nil {
			return err
		}
		var seq uint64
		for _, e := range entries {
			seq = max(seq, e.Seq)
		}
		for _, g := range guids {
			seq++
			if err := q.write(Entry{op, pkey, g, seq, time.Now()}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("UFM's queue: cannot keep a call: %w", err)
	}
	return nil
}

// Do keeps a call and sends it. When UFM does not take it now, the error is ErrQueued
// and tells why; any other error means that not every GUID's call is kept.
func (q *Queue) Do(ctx context.Context, c *Client, op Op, pkey uint16, guids ...GUID) error {
	if Default(pkey) || len(guids) == 0 {
		return nil
	}
	if err := q.Put(ctx, op, pkey, guids...); err != nil {
		return err
	}
	batch := make([]Entry, len(guids))
	for i, g := range guids {
		batch[i] = Entry{PKey: pkey, GUID: g}
	}
	if err := q.send(ctx, c, batch); err != nil {
		return fmt.Errorf("%w; %w", err, ErrQueued)
	}
	return nil
}

// Replay sends what is kept, in order, and tells how many entries are done. It stops
// when UFM is away, and goes on after a refusal. Damaged entries, which it sets aside,
// are in the error, one line each, as is what UFM did not take.
func (q *Queue) Replay(ctx context.Context, c *Client) (int, error) {
	entries, problems, err := q.setAside(ctx)
	if err != nil {
		return 0, err
	}
	done := 0
	for len(entries) > 0 {
		n := 1
		for n < len(entries) && n < 64 && entries[n].Op == entries[0].Op && entries[n].PKey == entries[0].PKey {
			n++
		}
		err := q.send(ctx, c, entries[:n])
		if err == nil {
			done += n
		} else {
			problems = append(problems, err)
		}
		entries = entries[n:]
		if errors.Is(err, ErrAway) || ctx.Err() != nil {
			problems = append(problems, fmt.Errorf("UFM's queue: %d calls are still kept in %s", n+len(entries), q.dir))
			break
		}
	}
	return done, errors.Join(problems...)
}

// List is what is kept, in order. Damaged entries are in the error, one line each.
func (q *Queue) List(ctx context.Context) ([]Entry, error) {
	var entries []Entry
	var damaged []string
	err := q.locked(ctx, func() (err error) { entries, damaged, err = q.read(); return })
	problems := []error{err}
	for _, name := range damaged {
		problems = append(problems, q.damaged(name))
	}
	return entries, errors.Join(problems...)
}

func (q *Queue) damaged(name string) error {
	return fmt.Errorf("UFM's queue: %s is damaged; compare the partition of that GUID in UFM, then remove the file", filepath.Join(q.dir, name))
}

// setAside reads the entries and renames those that are damaged, so that they are
// kept, and reported, but never sent.
func (q *Queue) setAside(ctx context.Context) (entries []Entry, problems []error, err error) {
	err = q.locked(ctx, func() error {
		var damaged []string
		if entries, damaged, err = q.read(); err != nil {
			return err
		}
		for _, name := range damaged {
			aside := name
			if filepath.Ext(name) != ".damaged" {
				aside += ".damaged"
			}
			if err := os.Rename(filepath.Join(q.dir, name), filepath.Join(q.dir, aside)); err != nil {
				return err
			}
			problems = append(problems, q.damaged(aside))
		}
		return wholefile.Sync(q.dir)
	})
	return entries, problems, err
}

// send brings the GUIDs of a batch, all of one partition, to what the queue says of
// them by now: another process may have sent or replaced an entry in the meantime.
func (q *Queue) send(ctx context.Context, c *Client, batch []Entry) error {
	var guids []GUID
	for _, e := range batch {
		guids = append(guids, e.GUID)
	}
	unlock, err := q.lockGUIDs(ctx, guids)
	if err != nil {
		return err
	}
	defer unlock()
	for {
		var left []Entry
		for _, e := range batch {
			now, err := readEntry(q.file(e.PKey, e.GUID))
			if err == nil {
				left = append(left, now)
			} else if !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("UFM's queue: %w", err)
			}
		}
		if len(left) == 0 {
			return nil
		}
		op := left[0].Op
		same := slices.DeleteFunc(slices.Clone(left), func(e Entry) bool { return e.Op != op })
		guids = guids[:0]
		for _, e := range same {
			guids = append(guids, e.GUID)
		}
		if err := c.change(ctx, string(op), same[0].PKey, guids); err != nil {
			return err
		}
		if err := q.erase(ctx, same); err != nil {
			return err
		}
	}
}

// erase removes entries that UFM has confirmed, but not what replaced them.
func (q *Queue) erase(ctx context.Context, sent []Entry) error {
	err := q.locked(ctx, func() error {
		for _, e := range sent {
			if now, err := readEntry(q.file(e.PKey, e.GUID)); err != nil || now.Seq != e.Seq {
				continue
			}
			if err := os.Remove(q.file(e.PKey, e.GUID)); err != nil {
				return err
			}
		}
		return nil // not synced: a crash sends it once more
	})
	if err != nil {
		return fmt.Errorf("UFM's queue: cannot erase a call: %w", err)
	}
	return nil
}

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

// ErrQueued means that UFM has not confirmed a call, and that the queue has it.
var ErrQueued = errors.New("the call stays in the queue until UFM is reachable")

// Op is the operation on a GUID.
type Op string

// The operations.
const (
	Add    Op = "add"
	Remove Op = "remove"
)

// Entry is an operation on a GUID in a partition that UFM has not confirmed.
type Entry struct {
	Op   Op
	PKey uint16
	GUID GUID
	Seq  uint64 // entries are sent in this order
	Time time.Time
}

// Queue is a directory of the calls that UFM has not confirmed.
type Queue struct{ dir string }

// OpenQueue opens a queue of this node. It creates the directory if only the last part of
// its path is missing.
func OpenQueue(dir string) (*Queue, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("UFM's queue: cannot create %s: %w", dir, errors.Unwrap(err))
	}
	q := &Queue{dir}
	if err := trusted.Parents(q.lockPath()); err != nil {
		return nil, fmt.Errorf("UFM's queue: %w", err)
	}
	return q, nil
}

// Put stores a call for each GUID; a new call replaces an older one for the same GUID and
// partition.
func (q *Queue) Put(ctx context.Context, op Op, pkey uint16, guids ...GUID) error {
	if IsDefault(pkey) {
		return nil
	}
	if err := checkCall(pkey, guids); err != nil {
		return err
	}
	err := q.runLocked(ctx, func() error {
		entries, _, err := q.readEntries()
		if err != nil {
			return err
		}
		var seq uint64
		for _, e := range entries {
			seq = max(seq, e.Seq)
		}
		for _, g := range guids {
			seq++
			if err := q.writeEntry(Entry{op, pkey, g, seq, time.Now()}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("UFM's queue: cannot store a call: %w", err)
	}
	return nil
}

// Do stores a call and sends it. If UFM does not accept it now, Do fails with ErrQueued and
// the reason; after any other error the calls of some GUIDs may not be stored.
func (q *Queue) Do(ctx context.Context, c *Client, op Op, pkey uint16, guids ...GUID) error {
	if IsDefault(pkey) || len(guids) == 0 {
		return nil
	}
	if err := q.Put(ctx, op, pkey, guids...); err != nil {
		return err
	}
	batch := make([]Entry, len(guids))
	for i, g := range guids {
		batch[i] = Entry{PKey: pkey, GUID: g}
	}
	if err := q.sendBatch(ctx, c, batch); err != nil {
		return fmt.Errorf("%w; %w", err, ErrQueued)
	}
	return nil
}

// Replay sends the stored calls in order, and returns the number of those that are done. It
// stops when UFM is unreachable, and continues after a rejection. The error has one line for
// each call that UFM rejected, and for each damaged entry, which Replay renames.
func (q *Queue) Replay(ctx context.Context, c *Client) (int, error) {
	entries, problems, err := q.setAsideDamaged(ctx)
	if err != nil {
		return 0, err
	}
	done := 0
	for len(entries) > 0 {
		n := 1
		for n < len(entries) && n < 64 && entries[n].Op == entries[0].Op && entries[n].PKey == entries[0].PKey {
			n++
		}
		err := q.sendBatch(ctx, c, entries[:n])
		if err == nil {
			done += n
		} else {
			problems = append(problems, err)
		}
		entries = entries[n:]
		if errors.Is(err, ErrUnreachable) || ctx.Err() != nil {
			problems = append(problems, fmt.Errorf("UFM's queue: %d calls are still queued in %s", n+len(entries),
				q.dir))
			break
		}
	}
	return done, errors.Join(problems...)
}

// ListEntries returns the stored calls in order. The error reports damaged entries, one line
// each.
func (q *Queue) ListEntries(ctx context.Context) ([]Entry, error) {
	var entries []Entry
	var damaged []string
	err := q.runLocked(ctx, func() (err error) { entries, damaged, err = q.readEntries(); return })
	problems := []error{err}
	for _, name := range damaged {
		problems = append(problems, q.damagedError(name))
	}
	return entries, errors.Join(problems...)
}

func (q *Queue) damagedError(name string) error {
	return fmt.Errorf("UFM's queue: %s is damaged; compare the partition of that GUID in UFM, then remove the file",
		filepath.Join(q.dir, name))
}

// setAsideDamaged reads the entries and renames those that are damaged: they stay and are
// reported, but never sent.
func (q *Queue) setAsideDamaged(ctx context.Context) (entries []Entry, problems []error, err error) {
	err = q.runLocked(ctx, func() error {
		var damaged []string
		if entries, damaged, err = q.readEntries(); err != nil {
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
			problems = append(problems, q.damagedError(aside))
		}
		return wholefile.Sync(q.dir)
	})
	return entries, problems, err
}

// sendBatch sends the calls that the queue has now for the GUIDs of a batch, all of one partition: another process may
// have sent or replaced an entry meanwhile.
func (q *Queue) sendBatch(ctx context.Context, c *Client, batch []Entry) error {
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
			now, err := readEntry(q.entryPath(e.PKey, e.GUID))
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
		if err := c.changeMembers(ctx, string(op), same[0].PKey, guids); err != nil {
			return err
		}
		if err := q.removeSent(ctx, same); err != nil {
			return err
		}
	}
}

// removeSent removes entries that UFM has confirmed, but not those that replaced them.
func (q *Queue) removeSent(ctx context.Context, sent []Entry) error {
	err := q.runLocked(ctx, func() error {
		for _, e := range sent {
			if now, err := readEntry(q.entryPath(e.PKey, e.GUID)); err != nil || now.Seq != e.Seq {
				continue
			}
			if err := os.Remove(q.entryPath(e.PKey, e.GUID)); err != nil {
				return err
			}
		}
		return nil // not synced: after a crash the call is sent once more
	})
	if err != nil {
		return fmt.Errorf("UFM's queue: cannot remove a call: %w", err)
	}
	return nil
}

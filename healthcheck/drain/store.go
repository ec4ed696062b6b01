// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gojail/gojail/healthcheck/run"
	"github.com/gojail/gojail/internal/statefile"
	"github.com/gojail/gojail/internal/trusted"
	"github.com/gojail/gojail/internal/wholefile"
)

// Store is where a node's health is remembered, in two directories of root's.
type Store struct {
	Run   string // gone with the next boot: history.json, lock files
	State string // stays: drain.json
	// Write is Keep for drain.json, with a deadline. nil: Keep itself, which hangs with the disk.
	Write run.Writer
}

// Prepare makes the directories if they are missing, and refuses them if others can write them.
func (s Store) Prepare() error {
	for _, dir := range []string{s.Run, s.State} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cannot make the directory %s: %w", dir, errors.Unwrap(err))
		}
		if err := trusted.Parents(filepath.Join(dir, "file")); err != nil {
			return err
		}
	}
	return nil
}

// Adopt takes over what another store has and this one lacks.
func (s Store) Adopt(from Store) error {
	for old, own := range map[string]string{from.history(): s.history(), from.record(): s.record()} {
		if _, err := os.Lstat(own); old == own || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Rename(old, own); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot take over what an earlier version remembers: %w", err)
		}
	}
	return nil
}

func (s Store) history() string { return filepath.Join(s.Run, "history.json") }
func (s Store) record() string  { return filepath.Join(s.State, "drain.json") }

// History reads the history of this boot; one of another boot or a damaged one is an empty one.
func (s Store) History(boot string) (*History, error) {
	h := &History{}
	err := statefile.Read(s.history(), h, nil)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil || h.Boot != boot {
		h = &History{Boot: boot, Checks: map[string]Past{}}
	}
	return h, err
}

// Save writes the history if it is another than the one that is there.
func (s Store) Save(h *History) error {
	text, err := statefile.Encode(h)
	if err != nil {
		return err
	}
	return Keep(s.history(), text)
}

// readRecord reads the drain of ours that stands; nil is none.
func (s Store) readRecord() (*Record, error) {
	r := &Record{}
	err := statefile.Read(s.record(), r, func() error {
		if r.ID == "" || r.Check == "" || r.Reason == "" {
			return errors.New("something is missing")
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w; remove it and undrain this node by hand", err)
	}
	return r, nil
}

// writeRecord writes the record, or removes it if it is nil, until ctx ends at most.
// If it comes too late for that, the next run finds it.
func (s Store) writeRecord(ctx context.Context, r *Record) error {
	text, err := statefile.Encode(r)
	if err != nil {
		return err
	}
	if s.Write == nil {
		return Keep(s.record(), text)
	}
	return s.Write(ctx, s.record(), text)
}

// nothing is the text of nil.
const nothing = "null\n"

// Keep replaces a file as a whole, or removes it if text is that of nil, and has it on
// the disk before it returns. It does nothing if the file has that text.
func Keep(path string, text []byte) error {
	if string(text) == nothing {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, text) {
		return nil
	}
	return wholefile.Save(path, text, 0o600)
}

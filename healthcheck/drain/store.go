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

// Store is the stored state of a node's health, in two directories owned by root.
type Store struct {
	Run   string // for state that ends with the boot: history.json, lock files
	State string // for state that survives a reboot: drain.json
	// Writer for drain.json with a deadline. nil: WriteFile, which hangs with the disk.
	Write run.Writer
}

// Prepare creates missing directories, and refuses directories that others can write.
func (s Store) Prepare() error {
	for _, dir := range []string{s.Run, s.State} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cannot create the directory %s: %w", dir, errors.Unwrap(err))
		}
		if err := trusted.Parents(filepath.Join(dir, "file")); err != nil {
			return err
		}
	}
	return nil
}

// Preview returns the store for a run that changes nothing: the files of another store serve for those that this one
// lacks.
func (s Store) Preview(from Store) Store {
	if _, err := os.Lstat(s.historyPath()); errors.Is(err, fs.ErrNotExist) {
		s.Run = from.Run
	}
	if _, err := os.Lstat(s.recordPath()); errors.Is(err, fs.ErrNotExist) {
		s.State = from.State
	}
	return s
}

// Adopt copies the files of another store that this one lacks.
func (s Store) Adopt(from Store) error {
	for old, own := range map[string]string{from.historyPath(): s.historyPath(), from.recordPath(): s.recordPath()} {
		if _, err := os.Lstat(own); old == own || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.Rename(old, own); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot adopt the state of an earlier version: %w", err)
		}
	}
	return nil
}

func (s Store) historyPath() string { return filepath.Join(s.Run, "history.json") }
func (s Store) recordPath() string  { return filepath.Join(s.State, "drain.json") }

// ReadHistory reads the history of this boot; a history of another boot or a damaged one is
// replaced by an empty one.
func (s Store) ReadHistory(boot string) (*History, error) {
	h := &History{}
	err := statefile.Read(s.historyPath(), h, nil)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil || h.Boot != boot {
		h = &History{Boot: boot, Checks: map[string]CheckHistory{}}
	}
	return h, err
}

// SaveHistory writes the history if it differs from the stored one.
func (s Store) SaveHistory(h *History) error {
	text, err := statefile.Encode(h)
	if err != nil {
		return err
	}
	return WriteFile(s.historyPath(), text)
}

// readRecord reads the record of the existing drain; nil if there is none.
func (s Store) readRecord() (*Record, error) {
	r := &Record{}
	err := statefile.Read(s.recordPath(), r, func() error {
		if r.ID == "" || r.Check == "" || r.Reason == "" {
			return errors.New("a field is missing")
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w; remove the file and undrain this node by hand", err)
	}
	return r, nil
}

// writeRecord writes the record, or removes it if r is nil, and returns at the latest when ctx
// ends. The next run finds a record that is written later.
func (s Store) writeRecord(ctx context.Context, r *Record) error {
	text, err := statefile.Encode(r)
	if err != nil {
		return err
	}
	if s.Write == nil {
		return WriteFile(s.recordPath(), text)
	}
	return s.Write(ctx, s.recordPath(), text)
}

// nullText is the text of a nil value.
const nullText = "null\n"

// WriteFile replaces a file atomically, or removes it if text is that of nil, and syncs it to
// disk. It does nothing if the file already has that text.
func WriteFile(path string, text []byte) error {
	if string(text) == nullText {
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

// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gojail/gojail/healthcheck/drain"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/statefile"
)

// Store is where rounds are remembered: a directory of root's that outlives a boot,
// and one for lock files.
type Store struct {
	State string // round.json, tested.json, nodes/NAME/drain.json
	Run   string
}

func (s Store) round() string  { return filepath.Join(s.State, "round.json") }
func (s Store) tested() string { return filepath.Join(s.State, "tested.json") }
func (s Store) nodes() string  { return filepath.Join(s.State, "nodes") }

// Prepare makes the directories, refuses them if others can write them, and takes
// the lock: one round at a time. It ends with the file.
func (s Store) Prepare() (*os.File, error) {
	if err := (drain.Store{Run: s.Run, State: s.nodes()}).Prepare(); err != nil {
		return nil, err
	}
	path := filepath.Join(s.Run, "nccl.lock")
	file, err := filelock.Try(path)
	if errors.Is(err, filelock.ErrBusy) {
		return nil, fmt.Errorf("another round is under way; to see which: fuser -v %s", path)
	}
	return file, err
}

// drainStore is where the drain of a node is remembered.
func (s Store) drainStore(node string) drain.Store {
	return drain.Store{Run: s.Run, State: filepath.Join(s.nodes(), node)}
}

// listDrained are the nodes with a drain of this tool's on record.
func (s Store) listDrained() ([]string, error) {
	records, err := filepath.Glob(filepath.Join(s.nodes(), "*", "drain.json"))
	var nodes []string
	for _, path := range records {
		nodes = append(nodes, filepath.Base(filepath.Dir(path)))
	}
	slices.Sort(nodes)
	return nodes, err
}

// readRound reads the round that was not finished; nil is none.
func (s Store) readRound() (*testRound, error) {
	r := &testRound{}
	err := statefile.Read(s.round(), r, func() error {
		if !r.whole() {
			return errors.New("something is missing")
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w; cancel the jobs %s*, delete reservations of such names, and remove it", err, prefix)
	}
	return r, nil
}

// whole tells whether a round that was read can be worked with.
func (r *testRound) whole() bool {
	for _, t := range r.Tests {
		if t == nil || len(t.Nodes) < 1 || len(t.Nodes) > 2 || t.Name == "" {
			return false
		}
	}
	for _, node := range slices.Concat(r.Nodes, r.Retest, r.Undrained) {
		if !isName(node) {
			return false
		}
	}
	return r.ID != "" && !r.Began.IsZero()
}

// saveRound writes the round; Done removes it.
func (s Store) saveRound(r *testRound) error { return write(s.round(), r) }

// removeRound ends the round.
func (s Store) removeRound() error {
	err := os.Remove(s.round())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// readTested is when each node had a test that said something, as far as it is remembered.
func (s Store) readTested() (map[string]time.Time, error) {
	tested := map[string]time.Time{}
	if err := statefile.Read(s.tested(), &tested, nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return map[string]time.Time{}, fmt.Errorf("%w; remove it", err)
	}
	return tested, nil
}

// saveTested writes it.
func (s Store) saveTested(tested map[string]time.Time) error { return write(s.tested(), tested) }

func write(path string, value any) error {
	text, err := statefile.Encode(value)
	if err != nil {
		return err
	}
	return drain.Keep(path, text)
}

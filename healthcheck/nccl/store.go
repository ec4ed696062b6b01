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

// Store is the stored state of rounds: a directory owned by root that survives a reboot, and
// one for lock files.
type Store struct {
	State string // round.json, tested.json, nodes/NAME/drain.json
	Run   string
}

func (s Store) roundPath() string  { return filepath.Join(s.State, "round.json") }
func (s Store) testedPath() string { return filepath.Join(s.State, "tested.json") }
func (s Store) nodesPath() string  { return filepath.Join(s.State, "nodes") }

// Prepare creates the directories, refuses directories that others can write, and takes the
// lock, which allows one round at a time. Closing the returned file releases the lock.
func (s Store) Prepare() (*os.File, error) {
	if err := (drain.Store{Run: s.Run, State: s.nodesPath()}).Prepare(); err != nil {
		return nil, err
	}
	path := filepath.Join(s.Run, "nccl.lock")
	file, err := filelock.Try(path)
	if errors.Is(err, filelock.ErrBusy) {
		return nil, fmt.Errorf("another round is in progress; to find it: fuser -v %s", path)
	}
	return file, err
}

// drainStore returns the store for the drain of a node.
func (s Store) drainStore(node string) drain.Store {
	return drain.Store{Run: s.Run, State: filepath.Join(s.nodesPath(), node)}
}

// listDrained returns the nodes with a recorded drain by this tool.
func (s Store) listDrained() ([]string, error) {
	records, err := filepath.Glob(filepath.Join(s.nodesPath(), "*", "drain.json"))
	var nodes []string
	for _, path := range records {
		nodes = append(nodes, filepath.Base(filepath.Dir(path)))
	}
	slices.Sort(nodes)
	return nodes, err
}

// readRound reads the unfinished round; nil if there is none.
func (s Store) readRound() (*testRound, error) {
	r := &testRound{}
	err := statefile.Read(s.roundPath(), r, func() error {
		if !r.isWhole() {
			return errors.New("a field is missing")
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w; cancel the jobs %s*, delete reservations with such names, and remove the file", err,
			prefix)
	}
	return r, nil
}

// isWhole reports whether a round that was read is complete.
func (r *testRound) isWhole() bool {
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

// saveRound writes the round; removeRound removes it.
func (s Store) saveRound(r *testRound) error { return writeState(s.roundPath(), r) }

// removeRound removes the round.
func (s Store) removeRound() error {
	err := os.Remove(s.roundPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// readTested reads the time of the last conclusive test of each node, as far as it is stored.
func (s Store) readTested() (map[string]time.Time, error) {
	tested := map[string]time.Time{}
	if err := statefile.Read(s.testedPath(), &tested, nil); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return map[string]time.Time{}, fmt.Errorf("%w; remove the file", err)
	}
	return tested, nil
}

// saveTested writes the time of the last conclusive test of each node.
func (s Store) saveTested(tested map[string]time.Time) error {
	return writeState(s.testedPath(), tested)
}

func writeState(path string, value any) error {
	text, err := statefile.Encode(value)
	if err != nil {
		return err
	}
	return drain.WriteFile(path, text)
}

// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gojail/gojail/healthcheck/drain"
	"github.com/gojail/gojail/internal/filelock"
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

// Drains is where the drain of a node is remembered.
func (s Store) Drains(node string) drain.Store {
	return drain.Store{Run: s.Run, State: filepath.Join(s.nodes(), node)}
}

// Drained are the nodes with a drain of this tool's on record.
func (s Store) Drained() ([]string, error) {
	records, err := filepath.Glob(filepath.Join(s.nodes(), "*", "drain.json"))
	var nodes []string
	for _, path := range records {
		nodes = append(nodes, filepath.Base(filepath.Dir(path)))
	}
	slices.Sort(nodes)
	return nodes, err
}

// Round reads the round that was not finished; nil is none.
func (s Store) Round() (*Round, error) {
	r := &Round{}
	found, err := read(s.round(), r)
	if err == nil && found && !r.whole() {
		err = errors.New("something is missing")
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s is damaged: %v; cancel the jobs %s*, delete reservations of such names, and remove it", s.round(), err, prefix)
	case !found:
		return nil, nil
	}
	return r, nil
}

// whole tells whether a round that was read can be worked with.
func (r *Round) whole() bool {
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

// SaveRound writes the round; Done removes it.
func (s Store) SaveRound(r *Round) error { return write(s.round(), r) }

// Done ends the round.
func (s Store) Done() error {
	err := os.Remove(s.round())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Tested is when each node had a test that said something, as far as it is remembered.
func (s Store) Tested() (map[string]time.Time, error) {
	tested := map[string]time.Time{}
	if _, err := read(s.tested(), &tested); err != nil {
		return map[string]time.Time{}, fmt.Errorf("%s is damaged: %w; remove it", s.tested(), err)
	}
	return tested, nil
}

// SaveTested writes it.
func (s Store) SaveTested(tested map[string]time.Time) error { return write(s.tested(), tested) }

// read reads JSON, and tells whether there is any.
func read(path string, into any) (bool, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, json.Unmarshal(text, into)
}

func write(path string, value any) error {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err
	}
	return drain.Keep(path, append(text, '\n'))
}

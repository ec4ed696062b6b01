// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gojail/gojail/gojail/sandbox"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/rmtree"
)

// An edit has a directory editsDir/gojail-edit-PID-RANDOM with the configuration and the state directory of its
// sandbox. Its process holds flock(2) on the directory, which the kernel releases when the process ends in whatever
// way.
const (
	editsDir   = "/run"
	editPrefix = "gojail-edit-"
)

// editSweepTimeout is the timeout for the end of the processes of a killed edit, and for the removal of its directory.
const editSweepTimeout = 30 * time.Second

// editDirectory is the locked directory of an edit.
type editDirectory struct {
	path string
	lock *os.File
}

// makeEditDirectory creates the directory of this process's edit. A sweep may remove a directory that is not locked
// yet; then it creates another one.
func makeEditDirectory() (*editDirectory, error) {
	for {
		dir, err := os.MkdirTemp(editsDir, fmt.Sprintf("%s%d-", editPrefix, os.Getpid()))
		if err != nil {
			return nil, fmt.Errorf("cannot create a directory for the sandbox: %w", oneline.Cause(err))
		}
		d, err := lockEditDirectory(dir)
		if d != nil || err != nil {
			return d, err
		}
	}
}

// lockEditDirectory locks the directory of an edit. It returns nil if another process has it, or has removed it.
func lockEditDirectory(path string) (*editDirectory, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", path, oneline.Cause(err))
	}
	err = filelock.TryFile(file)
	if err == nil {
		opened, _ := file.Stat()
		if there, gone := os.Lstat(path); gone == nil && os.SameFile(opened, there) {
			return &editDirectory{path, file}, nil
		}
	}
	file.Close()
	if err != nil && !errors.Is(err, filelock.ErrBusy) {
		return nil, err
	}
	return nil, nil
}

// remove ends the processes of the edit's sandbox that are left, and removes the directory.
func (d *editDirectory) remove() error {
	defer d.lock.Close()
	until := time.Now().Add(editSweepTimeout)
	if _, err := os.Lstat(d.statePath()); err == nil {
		s, err := state.OpenState(d.statePath())
		if err == nil {
			err = sandbox.EndProcesses(s, until)
		}
		if err != nil {
			return err
		}
	}
	return rmtree.Remove(editsDir, filepath.Base(d.path), until)
}

func (d *editDirectory) statePath() string { return filepath.Join(d.path, "state") }

// SweepEdits removes what killed edits left on this node. Their copies in the store are removed by the next change of
// the jail, on whichever node.
func SweepEdits() (removed []string, err error) {
	entries, err := os.ReadDir(editsDir)
	if err != nil {
		return nil, fmt.Errorf("cannot look for killed edits: %w", oneline.Cause(err))
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), editPrefix) {
			continue
		}
		d, e := lockEditDirectory(filepath.Join(editsDir, e.Name()))
		if d != nil {
			if e = d.remove(); e == nil {
				removed = append(removed, d.path)
			}
		}
		if e != nil {
			err = oneline.Both(err, fmt.Errorf("cannot remove what a killed gojail jail edit left: %w", e))
		}
	}
	return removed, err
}

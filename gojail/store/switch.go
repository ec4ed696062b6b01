// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gojail/gojail/internal/statefile"
	"github.com/gojail/gojail/internal/wholefile"
)

// switching is an entry of the history.
type switching struct {
	To       string    `json:"to"`             // name in versions/
	From     string    `json:"from,omitempty"` // "": the jail had no current version
	Rollback bool      `json:"rollback,omitempty"`
	Time     time.Time `json:"time"`
	By       string    `json:"by"`
}

// historyMax is the maximum number of entries in the history.
const historyMax = 1000

// Moved is the result of a switch.
type Moved struct{ From, To string }

// CurrentFile returns the name in versions/ to which the link leads, or "" if there is no link.
func (j *Jail) CurrentFile() (string, error) {
	target, err := os.Readlink(j.path(currentLink))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("cannot read the current version of jail %s: %w", j.Name, err)
	case filepath.Dir(target) != versionsDir:
		return "", fmt.Errorf("%s leads to %q and not to a version; switch to one: gojail jail switch %s VERSION",
			j.path(currentLink), target, j.Name)
	}
	return filepath.Base(target), nil
}

// SwitchTo makes a version the current one. An empty id stands for the newest version.
func (j *Jail) SwitchTo(ctx context.Context, id, by string) (moved Moved, err error) {
	err = j.withLock(ctx, func() error {
		v, err := j.findTarget(id)
		if err != nil {
			return err
		}
		history, from, err := j.readHistory()
		if err != nil {
			return err
		}
		moved, err = j.switchLink(history, switching{To: v.file, From: from, By: by})
		return err
	})
	return moved, err
}

// findTarget returns the version that SwitchTo makes current.
func (j *Jail) findTarget(id string) (*Version, error) {
	if id != "" {
		return j.Version(id)
	}
	all, err := j.Versions()
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return j.Version("")
	}
	return all[len(all)-1], nil
}

// Rollback makes the version current that was current before the last switch. Another rollback goes back one more
// switch.
func (j *Jail) Rollback(ctx context.Context, by string) (moved Moved, err error) {
	err = j.withLock(ctx, func() error {
		history, from, err := j.readHistory()
		if err != nil {
			return err
		}
		to := ""
		for _, file := range slices.Backward(listPrevious(history, from)) {
			if _, err := os.Lstat(j.path(versionsDir, file)); err == nil {
				to = file
				break
			}
		}
		if to == "" {
			return fmt.Errorf("jail %s has no previous version; choose one with: gojail jail switch %s VERSION", j.Name,
				j.Name)
		}
		moved, err = j.switchLink(history, switching{To: to, From: from, Rollback: true, By: by})
		return err
	})
	return moved, err
}

// listPrevious returns the versions that were current before current, the latest last. A rollback removes versions from
// this list, up to the one that it made current. An entry whose switch did not happen is ignored: the next entry has
// the same From.
func listPrevious(history []switching, current string) (stack []string) {
	for i, s := range history {
		next := current
		if i+1 < len(history) {
			next = history[i+1].From
		}
		switch {
		case next == s.From:
		case s.Rollback:
			for len(stack) > 0 {
				last := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				if last == s.To {
					break
				}
			}
		case s.From != "":
			stack = append(stack, s.From)
		}
	}
	return stack
}

// readHistory returns the history, the oldest switch first, and the current version.
func (j *Jail) readHistory() (history []switching, current string, err error) {
	current, err = j.CurrentFile()
	if err != nil {
		return nil, "", err
	}
	err = statefile.Read(j.path(historyFile), &history, nil)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("%w; move it away to begin a new history", err)
	}
	return history, current, nil
}

// switchLink adds a switch to the history, then replaces the link. The caller holds the jail's lock.
func (j *Jail) switchLink(history []switching, s switching) (Moved, error) {
	if s.From == s.To {
		return Moved{s.From, s.To}, nil
	}
	s.Time = time.Now().Round(time.Second)
	history = append(history, s)
	text, err := statefile.Encode(history[max(0, len(history)-historyMax):])
	if err != nil {
		return Moved{}, err
	}
	if err := wholefile.Save(j.path(historyFile), text, 0o644); err != nil {
		return Moved{}, fmt.Errorf("cannot write the history of jail %s: %w", j.Name, err)
	}
	temporary := j.path(workDir, linkName)
	if err := os.Symlink(filepath.Join(versionsDir, s.To), temporary); err != nil {
		return Moved{}, fmt.Errorf("cannot create the link to the current version: %w", err)
	}
	if err := os.Rename(temporary, j.path(currentLink)); err != nil {
		return Moved{}, fmt.Errorf("cannot switch jail %s: %w", j.Name, err)
	}
	return Moved{s.From, s.To}, wholefile.Sync(j.dir)
}

// linkName is the name of the link to the current version before it is renamed.
const linkName = "link"

// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/store"
)

// publishTimeout is the time for which a launch waits until its lease is written. gojail jail gc does not rely on that
// lease.
const publishTimeout = time.Second

// Around calls open, which opens the root of a jail for its template, and notes the versions that the root may be. The
// caller holds the template's lock.
func Around(s *state.State, c *config.Config, j *config.Jail, open func() (int, error)) (int, error) {
	jail := findStoredJail(c, j)
	if jail == nil {
		if c.Store != "" { // earlier notes are out of date
			if err := s.NoteVersions(j.Name, nil); err != nil {
				return -1, err
			}
		}
		return open()
	}
	before, _ := jail.CurrentFile() // open reports the error
	if err := s.NoteVersions(j.Name, []string{before}); err != nil {
		return -1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), publishTimeout)
	defer cancel()
	// It does not wait for steps, because they may wait for this template. After a failure, the next refresh writes it.
	refreshUntil(ctx, s, c, false, 0)
	root, err := open()
	if after, _ := jail.CurrentFile(); err == nil && after != before {
		// Somebody switched in the meantime: the root is one of the two versions.
		if err = s.NoteVersions(j.Name, []string{before, after}); err != nil {
			unix.Close(root)
		}
	}
	return root, err
}

// findStoredJail returns the jail of the store of which a jail's root is a version, or nil.
func findStoredJail(c *config.Config, j *config.Jail) *store.Jail {
	name := findStoredName(c, j)
	if c.Store == "" || name == "" {
		return nil
	}
	opened, err := store.Open(c.Store)
	if err != nil {
		return nil
	}
	jail, err := opened.Jail(name)
	if err != nil {
		return nil
	}
	return jail
}

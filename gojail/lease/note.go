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

// publishPatience is how long a launch waits for its lease to be written. gc does not rely on that.
const publishPatience = time.Second

// Around calls open, which opens the root of a jail for its template, and notes which version that may be. The caller
// holds the template's lock.
func Around(s *state.State, c *config.Config, j *config.Jail, open func() (int, error)) (int, error) {
	jail := storedJail(c, j)
	if jail == nil {
		if c.Store != "" { // what was noted before is no longer so
			if err := s.NoteVersions(j.Name, nil); err != nil {
				return -1, err
			}
		}
		return open()
	}
	before, _ := jail.CurrentFile() // open says what is wrong
	if err := s.NoteVersions(j.Name, []string{before}); err != nil {
		return -1, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), publishPatience)
	defer cancel()
	// A step that waits for this template is not waited for. What fails is done again later.
	refreshUntil(ctx, s, c, false, 0)
	root, err := open()
	if after, _ := jail.CurrentFile(); err == nil && after != before {
		// Switched meanwhile: the root is one or the other.
		if err = s.NoteVersions(j.Name, []string{before, after}); err != nil {
			unix.Close(root)
		}
	}
	return root, err
}

// storedJail returns the jail of the store that a jail's root comes from, or nil.
func storedJail(c *config.Config, j *config.Jail) *store.Jail {
	name := nameOf(c, j)
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

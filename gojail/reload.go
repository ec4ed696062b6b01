// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Reload ends the zygote of a jail, so that the next job's sandbox comes from a
// template that is assembled anew, and has the site file compiled again.
// Sandboxes that are there live on. It tells whether there was a zygote.
func Reload(s *State, jail string, deadline time.Time) (bool, error) {
	if err := os.Remove(filepath.Join(s.Path(), "site")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("cannot remove %s/site: %w", s.Path(), cause(err))
	}
	if !present(s.zygote(jail)) {
		return false, nil
	}
	unlock, err := lockFile(filepath.Join(s.jail(jail), "lock"), deadline)
	if err != nil {
		return false, fmt.Errorf("jail %s: %w", jail, err)
	}
	defer unlock()
	return s.endZygote(jail, deadline)
}

// endZygote ends the zygote of a jail whose lock the caller has. Sandboxes live on: each holder has namespaces of its own.
func (s *State) endZygote(jail string, deadline time.Time) (bool, error) {
	r := readRecord(s.zygote(jail))
	if err := r.kill(time.Until(deadline)); err != nil {
		return false, fmt.Errorf("jail %s: %w", jail, err)
	}
	if err := os.Remove(s.zygote(jail)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("jail %s: cannot remove the record of its zygote: %w", jail, cause(err))
	}
	return r.Alive, nil
}

// EndUnusedZygotes ends the zygotes of jails that the configuration does not have any more, and returns these
// jails: nobody would ask such a zygote again, and the storage of its jail would stay in use.
func EndUnusedZygotes(s *State, c *Config) (jails []string, err error) {
	records, err := s.Zygotes()
	for _, r := range records {
		if c.Jails[r.Name] != nil || !r.Alive {
			continue
		}
		unlock, e := lockFile(filepath.Join(s.jail(r.Name), "lock"), time.Now())
		if e != nil {
			continue // a launcher with an earlier configuration makes it; the next sweep ends it
		}
		if _, e = s.endZygote(r.Name, time.Now().Add(teardownHolder)); e == nil {
			jails = append(jails, r.Name)
		}
		err = both(err, e)
		unlock()
	}
	return jails, err
}

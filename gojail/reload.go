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
	if err := os.Remove(filepath.Join(s.path, "site")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("cannot remove %s/site: %w", s.path, cause(err))
	}
	if !present(s.zygote(jail)) {
		return false, nil
	}
	unlock, err := lockFile(filepath.Join(s.jail(jail), "lock"), deadline)
	if err != nil {
		return false, fmt.Errorf("jail %s: %w", jail, err)
	}
	defer unlock()
	r := readRecord(s.zygote(jail))
	if err := r.kill(time.Until(deadline)); err != nil {
		return false, fmt.Errorf("jail %s: %w", jail, err)
	}
	if err := os.Remove(s.zygote(jail)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("jail %s: cannot remove the record of its zygote: %w", jail, cause(err))
	}
	return r.Alive, nil
}

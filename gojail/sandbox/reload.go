// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/oneline"
)

// Reload ends the zygote of a jail and removes the site file, so that the next job reassembles the template and
// compiles the site file again. Existing sandboxes live on. Reload reports whether there was a zygote.
func Reload(s *state.State, jail string, deadline time.Time) (bool, error) {
	if err := os.Remove(filepath.Join(s.Path(), contract.SiteFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("cannot remove %s/site: %w", s.Path(), oneline.Cause(err))
	}
	if !isPresent(s.ZygoteRecord(jail)) {
		return false, nil
	}
	unlock, err := filelock.Lock(filepath.Join(s.JailDir(jail), contract.LockFile), deadline)
	if err != nil {
		return false, config.JailError(jail, err)
	}
	defer unlock()
	return endZygote(s, jail, deadline)
}

// endZygote ends the zygote of a jail. The caller holds the jail's lock, under which launchers create zygotes.
// Sandboxes live on, because each holder has its own namespaces.
func endZygote(s *state.State, jail string, deadline time.Time) (bool, error) {
	r := state.ReadRecord(s.ZygoteRecord(jail))
	if err := r.Kill(time.Until(deadline)); err != nil {
		return false, config.JailError(jail, err)
	}
	if err := os.Remove(s.ZygoteRecord(jail)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, config.JailErrorf(jail, "cannot remove the record of its zygote: %w", oneline.Cause(err))
	}
	return r.Alive, nil
}

// EndUnusedZygotes ends the zygotes of jails that are no longer configured, and returns these jails: no job would use
// such a zygote, but its mounts would keep the jail's storage busy.
func EndUnusedZygotes(s *state.State, c *config.Config) (jails []string, err error) {
	records, err := s.Zygotes()
	for _, r := range records {
		if c.Jails[r.Name] != nil || !r.Alive {
			continue
		}
		unlock, lockErr := filelock.Lock(filepath.Join(s.JailDir(r.Name), contract.LockFile), time.Now())
		if lockErr != nil {
			continue // a launcher with an earlier configuration is creating the zygote; the next sweep ends it
		}
		_, endErr := endZygote(s, r.Name, time.Now().Add(teardownHolder))
		if endErr == nil {
			jails = append(jails, r.Name)
		}
		err = oneline.Both(err, endErr)
		unlock()
	}
	return jails, err
}

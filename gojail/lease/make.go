// SPDX-License-Identifier: Apache-2.0

// Package lease records in the store which versions of jails this node uses.
//
// Before the root of a jail is opened, the version to which its path leads is noted in the state directory. A lease is
// made from these notes, and from the roots of templates and of jobs' holders in /proc. It has the time at which the
// node began to make it: a version that is not in the lease, and was not current at that time, is not in use on the
// node, and cannot come into use. A lease that cannot be written delays the removal of versions, but fails no job.
package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/oneline"
)

// builderTimeout is the timeout for a step that builds a sandbox, which takes milliseconds if its template exists.
const builderTimeout = 500 * time.Millisecond

// finder finds the versions that this node uses.
type finder struct {
	ctx    context.Context
	state  *state.State
	config *config.Config
	roots  map[store.FileID]string
	lease  *store.Lease

	timeout time.Duration // for a step that builds a sandbox
}

// makeLease makes the lease of this node. The order matters: first the time, then the templates, including unfinished
// ones, then the jobs. A step may have got its holder from a template that has ended since; then the directory of its
// job already exists.
func makeLease(ctx context.Context, s *state.State, c *config.Config, opened *store.Store,
	timeout time.Duration) (*store.Lease, error) {
	f := &finder{ctx: ctx, state: s, config: c, lease: newLease(c), timeout: timeout}
	var err error
	if f.lease.Current, err = readCurrent(c, opened); err != nil {
		return nil, err
	}
	if f.roots, err = opened.Roots(); err != nil {
		return nil, err
	}
	f.addConfigured()
	if err := f.addTemplates(); err != nil {
		return nil, err
	}
	if err := f.addJobs(); err != nil {
		return nil, err
	}
	slices.SortFunc(f.lease.Uses, func(a, b store.Use) int {
		return cmp.Or(strings.Compare(a.Version, b.Version), strings.Compare(a.By, b.By))
	})
	f.lease.Uses = slices.Compact(f.lease.Uses)
	slices.Sort(f.lease.Unknown)
	return f.lease, nil
}

// readCurrent returns the current versions of the jails of the store that gojail.toml names.
func readCurrent(c *config.Config, opened *store.Store) (map[string]string, error) {
	var current map[string]string
	for _, j := range c.Jails {
		name := findStoredName(c, j)
		if name == "" || current[name] != "" {
			continue
		}
		jail, err := opened.Jail(name)
		if err != nil {
			continue // not built yet: it has no version
		}
		file, err := jail.CurrentFile()
		if err != nil {
			return nil, err
		}
		if file != "" && current == nil {
			current = map[string]string{}
		}
		if file != "" {
			current[name] = file
		}
	}
	return current, nil
}

// findStoredName returns the name in the store of the jail whose current version is a jail's root, or "".
func findStoredName(c *config.Config, j *config.Jail) string {
	if j.Versions != "" {
		return j.Versions
	}
	rest, below := c.CutStore(j.Root)
	if name, ok := strings.CutSuffix(rest, "/"+contract.StoreCurrent); below && ok && !strings.Contains(name, "/") {
		return name
	}
	return ""
}

// isStored reports whether a jail's root is, or may have been, in the store.
func (f *finder) isStored(jail string) bool {
	j := f.config.Jails[jail]
	if j == nil || j.Versions != "" {
		return true
	}
	_, below := f.config.CutStore(j.Root)
	return below
}

// addUse adds a use of a version.
func (f *finder) addUse(file, by string) {
	f.lease.Uses = append(f.lease.Uses, store.Use{Version: store.ID(file), By: by})
}

// addUnknown adds a use of an unknown version, with the reason.
func (f *finder) addUnknown(format string, args ...any) {
	f.lease.Unknown = append(f.lease.Unknown, fmt.Sprintf("%.300s", oneline.Text(fmt.Sprintf(format, args...))))
}

// addConfigured adds the versions that gojail.toml names as roots.
func (f *finder) addConfigured() {
	for _, j := range f.config.Jails {
		rest, below := f.config.CutStore(j.Root)
		if parts := strings.Split(rest, "/"); below && len(parts) == 3 && parts[1] == contract.StoreVersions {
			f.addUse(parts[2], "root of jail "+j.Name)
		}
	}
}

// addTemplates adds the versions of the templates, and those that unfinished templates may get.
func (f *finder) addTemplates() error {
	jails, err := state.Directories(filepath.Join(f.state.Path(), contract.JailsDir))
	if err != nil {
		return err
	}
	for _, jail := range jails {
		made := f.isBeingMade(jail)
		r := state.ReadRecord(f.state.ZygoteRecord(jail))
		if !made && !r.Alive {
			continue
		}
		noted, err := f.state.NotedVersions(jail)
		if err != nil {
			f.addUnknown("template of jail %s: cannot read which version it has: %v", jail, oneline.Cause(err))
		}
		for _, file := range noted {
			f.addUse(file, "template of jail "+jail)
		}
		if r.Alive {
			f.addProcess(r, jail, "template of jail "+jail, len(noted) > 0)
		}
	}
	return nil
}

// isBeingMade reports whether a launcher is making the template of a jail, by its lock.
func (f *finder) isBeingMade(jail string) bool {
	file, err := os.OpenFile(filepath.Join(f.state.JailDir(jail), contract.LockFile), os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close()
	now, cancel := context.WithCancel(f.ctx)
	cancel()
	return filelock.WaitFile(now, file) != nil
}

// addJobs adds the versions of the jobs' holders.
func (f *finder) addJobs() error {
	ids, err := state.Directories(filepath.Join(f.state.Path(), contract.JobsDir))
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !state.JobRule.MatchString(id) {
			continue
		}
		if err := f.waitForBuilder(id); err != nil {
			return err
		}
		records, err := f.state.Sandboxes(id)
		if err != nil {
			return err
		}
		for _, r := range records {
			if jail := r.Jail(); !r.Alive && f.isStored(jail) {
				f.addUnknown(
					"job %s: the holder of its sandbox %s has ended, and which versions the job uses is unknown", id,
					r.Name)
			} else if r.Alive {
				f.addProcess(r, jail, "job "+id, false)
			}
		}
	}
	return nil
}

// waitForBuilder waits until no step is building a sandbox of the job, because an unfinished sandbox has no record.
func (f *finder) waitForBuilder(job string) error {
	file, err := os.OpenFile(filepath.Join(f.state.JobDir(job), contract.LockFile), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	ctx, cancel := context.WithTimeout(f.ctx, f.timeout)
	defer cancel()
	if err := filelock.WaitFile(ctx, file); err != nil {
		f.addUnknown("job %s: a step is being built", job)
	}
	return nil
}

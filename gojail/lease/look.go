// SPDX-License-Identifier: Apache-2.0

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

// builderPatience is how long a step that builds a sandbox is waited for: that takes milliseconds, if its template is
// there.
const builderPatience = 500 * time.Millisecond

// looker finds what this node uses.
type looker struct {
	ctx    context.Context
	state  *state.State
	config *config.Config
	roots  map[store.FileID]string
	lease  *store.Lease

	patience time.Duration // for a step that builds a sandbox
}

// look makes the lease of this node. The order matters: the time first; then the templates, being made or there; then
// the jobs. A step that got a holder from a template which has ended since has its job's directory already.
func look(ctx context.Context, s *state.State, c *config.Config, opened *store.Store, patience time.Duration) (*store.Lease, error) {
	l := &looker{ctx: ctx, state: s, config: c, lease: newLease(c), patience: patience}
	var err error
	if l.lease.Current, err = readCurrent(c, opened); err != nil {
		return nil, err
	}
	if l.roots, err = opened.Roots(); err != nil {
		return nil, err
	}
	l.addConfigured()
	if err := l.addTemplates(); err != nil {
		return nil, err
	}
	if err := l.addJobs(); err != nil {
		return nil, err
	}
	slices.SortFunc(l.lease.Uses, func(a, b store.Use) int {
		return cmp.Or(strings.Compare(a.Version, b.Version), strings.Compare(a.By, b.By))
	})
	l.lease.Uses = slices.Compact(l.lease.Uses)
	slices.Sort(l.lease.Unknown)
	return l.lease, nil
}

// readCurrent returns the current versions of the jails that this node's come from.
func readCurrent(c *config.Config, opened *store.Store) (map[string]string, error) {
	var current map[string]string
	for _, j := range c.Jails {
		name := nameOf(c, j)
		if name == "" || current[name] != "" {
			continue
		}
		jail, err := opened.Jail(name)
		if err != nil {
			continue // not built yet: there is nothing to use
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

// nameOf returns the name in the store that a jail's root is the current version of, or "".
func nameOf(c *config.Config, j *config.Jail) string {
	if j.Versions != "" {
		return j.Versions
	}
	rest, below := strings.CutPrefix(j.Root, c.Store+"/")
	if name, is := strings.CutSuffix(rest, "/current"); below && is && !strings.Contains(name, "/") {
		return name
	}
	return ""
}

// isStored reports whether a jail's root is, or may have been, in the store.
func (l *looker) isStored(jail string) bool {
	j := l.config.Jails[jail]
	return j == nil || j.Versions != "" || strings.HasPrefix(j.Root, l.config.Store+"/")
}

func (l *looker) add(file, by string) {
	l.lease.Uses = append(l.lease.Uses, store.Use{Version: store.ID(file), By: by})
}

func (l *looker) doubt(format string, args ...any) {
	l.lease.Unknown = append(l.lease.Unknown, fmt.Sprintf("%.300s", oneline.Text(fmt.Sprintf(format, args...))))
}

// addConfigured adds versions that gojail.toml names as roots.
func (l *looker) addConfigured() {
	for _, j := range l.config.Jails {
		rest, below := strings.CutPrefix(j.Root, l.config.Store+"/")
		if parts := strings.Split(rest, "/"); below && len(parts) == 3 && parts[1] == "versions" {
			l.add(parts[2], "root of jail "+j.Name)
		}
	}
}

// addTemplates adds what the templates have, and what those that are being made may get.
func (l *looker) addTemplates() error {
	jails, err := state.Directories(filepath.Join(l.state.Path(), contract.JailsDir))
	if err != nil {
		return err
	}
	for _, jail := range jails {
		made := l.isBeingMade(jail)
		r := state.ReadRecord(l.state.ZygoteRecord(jail))
		if !made && !r.Alive {
			continue
		}
		noted, err := l.state.NotedVersions(jail)
		if err != nil {
			l.doubt("template of jail %s: cannot read which version it has: %v", jail, oneline.Cause(err))
		}
		for _, file := range noted {
			l.add(file, "template of jail "+jail)
		}
		if r.Alive {
			l.addProcess(r, jail, "template of jail "+jail, len(noted) > 0)
		}
	}
	return nil
}

// isBeingMade reports whether a launcher makes the template of a jail.
func (l *looker) isBeingMade(jail string) bool {
	file, err := os.OpenFile(filepath.Join(l.state.JailDir(jail), contract.LockFile), os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close()
	now, cancel := context.WithCancel(l.ctx)
	cancel()
	return filelock.WaitFile(now, file) != nil
}

// addJobs adds what the holders of jobs have.
func (l *looker) addJobs() error {
	ids, err := state.Directories(filepath.Join(l.state.Path(), contract.JobsDir))
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !state.JobRule.MatchString(id) {
			continue
		}
		if err := l.awaitBuilder(id); err != nil {
			return err
		}
		records, err := l.state.Sandboxes(id)
		if err != nil {
			return err
		}
		for _, r := range records {
			if jail := r.Jail(); !r.Alive && l.isStored(jail) {
				l.doubt("job %s: the holder of its sandbox %s has ended, and what the job still has is not known", id, r.Name)
			} else if r.Alive {
				l.addProcess(r, jail, "job "+id, false)
			}
		}
	}
	return nil
}

// awaitBuilder waits until no step builds a sandbox of the job: until then it has no record.
func (l *looker) awaitBuilder(job string) error {
	file, err := os.OpenFile(filepath.Join(l.state.JobDir(job), contract.LockFile), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	ctx, cancel := context.WithTimeout(l.ctx, l.patience)
	defer cancel()
	if err := filelock.WaitFile(ctx, file); err != nil {
		l.doubt("job %s: a step is being built", job)
	}
	return nil
}

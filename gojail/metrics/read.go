// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/site"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/version"
)

// Read reads the facts of a node from its state directory. c is its configuration, or nil where it cannot
// be read.
func Read(node string, s *state.State, c *config.Config) *Facts {
	f := &Facts{node: node, version: version.Text(), time: time.Now(), sandboxes: map[sandboxKind]int{}}
	f.endsFailed = len(s.Ended())
	f.readTemplates(s, c)
	names := newUsers()
	jobs, err := s.Jobs()
	f.AddProblem(err)
	for _, j := range jobs {
		f.readJob(s, j, names)
	}
	return f
}

// readTemplates reads the templates whose zygotes live. Of a jail that is assembled, the number of its
// sandboxes is known, too.
func (f *Facts) readTemplates(s *state.State, c *config.Config) {
	zygotes, err := s.Zygotes()
	f.AddProblem(err)
	for _, r := range zygotes {
		if !r.Alive {
			continue
		}
		versions, err := s.NotedVersions(r.Name)
		f.AddProblem(err)
		t := template{jail: r.Name, key: r.Key, version: joinVersions(versions), start: r.Written}
		if c != nil {
			j := c.Jails[r.Name]
			t.current, t.judged = j != nil && site.Key(c, j) == r.Key, true
		}
		f.templates = append(f.templates, t)
		f.sandboxes[sandboxKind{r.Name, sandboxActive}] += 0
	}
}

// The states of sandboxes, as `gojail ls` prints them.
const (
	sandboxActive  = "active"
	sandboxGone    = "gone"
	sandboxDamaged = "damaged"
)

func (f *Facts) readJob(s *state.State, of state.Job, names *users) {
	found := job{id: of.ID, start: s.Begun(of.ID)}
	for _, r := range of.Sandboxes {
		kind := sandboxKind{r.Jail(), sandboxActive}
		switch {
		case r.Damaged:
			kind.state = sandboxDamaged
		case !r.Alive:
			kind.state = sandboxGone
		}
		f.sandboxes[kind]++
		if r.Damaged {
			continue
		}
		found.user = names.name(r.UID)
		versions, err := s.SandboxVersions(of.ID, r.Name)
		f.AddProblem(err)
		found.jails = append(found.jails, jail{r.Jail(), joinVersions(versions)})
	}
	if len(found.jails) == 0 {
		return
	}
	slices.SortFunc(found.jails, func(a, b jail) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.version, b.version))
	})
	found.jails = slices.Compact(found.jails)
	f.jobs = append(f.jobs, found)
}

// joinVersions returns a version of the store by its name in versions/. There are two where the jail was switched
// while the template was assembled.
func joinVersions(files []string) string {
	var ids []string
	for _, file := range files {
		ids = append(ids, store.ID(file))
	}
	return strings.Join(ids, ",")
}

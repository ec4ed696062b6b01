// SPDX-License-Identifier: Apache-2.0

// Package metrics makes the metrics of a node, for the textfile collector of node_exporter. Data flows one way:
//
//	read.go    the state directory → Facts. It asks neither Slurm, nor the storage of a jail, nor a driver
//	gpus.go    the GPUs of a job, by their device nodes
//	cgroups.go the resources that a job uses, from its cgroups
//	facts.go   Facts: everything that is known of the node. The command adds the facts of netsetup
//	names.go   the metrics and their labels, and vfs.go; docs/metrics.md has the same list
//	render.go  Facts → text. Pure
//	mapping.go Facts → the files of dcgm-exporter
//	file.go    text → one file, replaced as a whole
//
// The library of the launch path (spank/bridge) must not import it: the packages of Prometheus take memory, and time to
// load.
package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/site"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/version"
)

// reader reads facts.
type reader struct {
	*Facts
	state  *state.State
	users  *users
	finder *gpuFinder
}

// Read reads the facts of a node from its state directory. c is its configuration, or nil if it cannot be read; proc is
// /proc.
func Read(node string, s *state.State, c *config.Config, proc string) *Facts {
	f := &Facts{node: node, version: version.Text(), time: time.Now(), sandboxes: map[sandboxKind]int{}}
	r := reader{f, s, newUsers(), newGPUFinder(s, proc)}
	f.endsFailed = len(s.Ended())
	r.readLaunches(c)
	r.readTemplates(c)
	jobs, err := s.Jobs()
	f.AddProblem(err)
	for _, j := range jobs {
		r.readJob(j)
	}
	return f
}

// readLaunches reads the counters of steps. The counters of each jail of the configuration, and of steps without a
// jail, begin at 0 in the first file: a counter that appeared with the first failure would have no increase (increase()
// of Prometheus).
func (r *reader) readLaunches(c *config.Config) {
	found, err := r.state.Launches()
	r.AddProblem(err)
	r.launches = map[string]state.Launches{}
	if err == nil && r.state.CountsLaunches() {
		r.launches[""] = state.Launches{}
		if c != nil {
			for name := range c.Jails {
				r.launches[name] = state.Launches{}
			}
		}
	}
	maps.Copy(r.launches, found)
}

// readTemplates reads the templates whose zygotes live. It also lets the number of sandboxes of each of their jails
// begin at 0.
func (r *reader) readTemplates(c *config.Config) {
	var hardware *node.Hardware
	if c != nil {
		hardware = node.ReadHardware(c)
	}
	zygotes, err := r.state.Zygotes()
	r.AddProblem(err)
	for _, z := range zygotes {
		if !z.Alive {
			continue
		}
		versions, err := r.state.NotedVersions(z.Name)
		r.AddProblem(err)
		t := template{jail: z.Name, key: z.Key, version: joinVersions(versions), start: z.Written}
		if c != nil {
			j := c.Jails[z.Name]
			t.current, t.judged = j != nil && site.Key(c, hardware, j) == z.Key, true
		}
		r.templates = append(r.templates, t)
		r.sandboxes[sandboxKind{z.Name, sandboxActive}] += 0
	}
}

// The states of sandboxes, as `gojail ls` prints them.
const (
	sandboxActive  = "active"
	sandboxGone    = "gone"
	sandboxForeign = "foreign"
	sandboxDamaged = "damaged"
)

func (r *reader) readJob(of state.Job) {
	found := job{id: of.ID, start: r.state.Begun(of.ID)}
	for _, holder := range of.Sandboxes {
		kind := sandboxKind{holder.Jail(), sandboxActive}
		switch {
		case holder.IsForeign() && holder.Lives():
			kind.state = sandboxForeign
		case holder.Damaged && !holder.IsForeign():
			kind.state = sandboxDamaged
		case !holder.Alive:
			kind.state = sandboxGone
		}
		r.sandboxes[kind]++
		if holder.Damaged {
			continue
		}
		found.user = r.users.name(holder.UID)
		versions, err := r.state.SandboxVersions(of.ID, holder.Name)
		r.AddProblem(err)
		found.jails = append(found.jails, jail{holder.Jail(), joinVersions(versions)})
	}
	if len(found.jails) == 0 || contract.IsLogin(of.ID) {
		return // the sandbox of a user's sessions is not a job's
	}
	slices.SortFunc(found.jails, func(a, b jail) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.version, b.version))
	})
	found.jails = slices.Compact(found.jails)
	gpus, err := r.state.GPUs(of.ID)
	r.AddProblem(err)
	found.gpus = r.finder.findAll(gpus)
	found.usage = readUsage(r.state.Cgroups(of.ID))
	found.scratch, found.scratchKnown = r.state.ScratchUsage(of.ID)
	r.jobs = append(r.jobs, found)
}

// joinVersions returns a version of the store by its name in versions/. It returns two if the jail was switched while
// the template was assembled.
func joinVersions(files []string) string {
	var ids []string
	for _, file := range files {
		ids = append(ids, store.ID(file))
	}
	return strings.Join(ids, ",")
}

// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/internal/storage"
)

// storageTimeout is how long storage may take for its first answer before it counts as silent.
const storageTimeout = 5 * time.Second

// checksAtOnce is the number of jails that are checked side by side.
const checksAtOnce = 16

// round checks all jails side by side, so that any number of silent storages costs the patience for one.
type round struct {
	*checker
	silentAt time.Time // when storage that has not answered counts as silent
	end      time.Time // when a check that is not finished is given up
	limit    time.Duration
	probes   map[string]*probe // by path
	leaders  map[int]*probe    // by mount: the probe that asks its server
	jails    []*jailCheck
	free     chan struct{}
}

// jailCheck is the check of one jail.
type jailCheck struct {
	*config.Jail
	waits    []wait // first for its root
	findings chan Finding
}

// wait is a path that a jail needs, and a probe of it or of the server of its mount.
type wait struct {
	path string
	*probe
}

// root returns the probe of the jail's root.
func (c *jailCheck) root() *probe { return c.waits[0].probe }

// checkJails checks all jails, within limit. isNeeded decides, once the storage has answered, whether more
// of a jail is to be checked.
func (c *checker) checkJails(limit time.Duration, isNeeded func(j *config.Jail, root *probe) bool) *round {
	start := time.Now()
	r := &round{checker: c, silentAt: start.Add(min(storageTimeout, limit*3/4)), end: start.Add(limit), limit: limit,
		probes: map[string]*probe{}, leaders: map[int]*probe{}, free: make(chan struct{}, checksAtOnce)}
	table, err := storage.ReadTable()
	if err != nil {
		c.fail("storage", "", "cannot read the mount table: %v", err)
		return r
	}
	for _, name := range c.config.JailNames() {
		r.jails = append(r.jails, r.startJail(table, c.config.Jails[name], isNeeded))
	}
	for _, jail := range r.jails {
		r.reportJail(jail)
	}
	return r
}

// startJail starts the check of a jail in the background.
func (r *round) startJail(table storage.Table, j *config.Jail, isNeeded func(*config.Jail, *probe) bool) *jailCheck {
	c := &jailCheck{Jail: j, findings: make(chan Finding, 256)}
	paths := []string{j.Root}
	for _, m := range j.Mounts {
		if m.Type == "bind" {
			paths = append(paths, m.Source)
		}
	}
	for i, path := range paths {
		m := table.Above(path)
		var leader *probe
		if m != nil {
			leader = r.leaders[m.ID]
		}
		leads := m != nil && leader == nil
		if p := r.probes[path]; p == nil && (leads || i == 0 || !r.watch) { // otherwise the server is asked already
			r.probes[path] = startProbe(table, path, m, leader)
		}
		if leads {
			r.leaders[m.ID] = r.probes[path]
		}
		if p := r.probes[path]; p != nil {
			c.waits = append(c.waits, wait{path, p})
		}
		if m != nil {
			c.waits = append(c.waits, wait{path, r.leaders[m.ID]})
		}
	}
	go r.checkInBackground(c, isNeeded)
	return c
}

// checkInBackground checks a jail as soon as its storages have answered.
func (r *round) checkInBackground(c *jailCheck, isNeeded func(*config.Jail, *probe) bool) {
	defer close(c.findings)
	for _, w := range c.waits {
		w.wait()
	}
	r.free <- struct{}{}
	defer func() { <-r.free }()
	one := *r.checker
	one.report = func(f Finding) { c.findings <- f }
	if isNeeded(c.Jail, c.root()) {
		one.checkJail(c.Jail)
		if !one.watch {
			one.checkStorage(c.Jail)
		}
	}
	one.checkTemplate(c.Jail, c.root())
	one.checkZygote(c.Jail)
}

// reportJail waits for the findings about a jail, and reports them.
func (r *round) reportJail(c *jailCheck) {
	for _, w := range c.waits {
		if !w.hasAnswered(r.silentAt) {
			r.report(Finding{Level: Fail, Subject: "jail " + c.Name, Silent: true,
				Remedy: "check the server and the network to it",
				Found:  fmt.Sprintf("%s: its storage %sdoes not answer", w.path, w.storageName())})
			return
		}
	}
	timer := time.NewTimer(time.Until(r.end))
	defer timer.Stop()
	for {
		select {
		case f, more := <-c.findings:
			if !more {
				return
			}
			r.report(f)
		case <-timer.C:
			r.report(Finding{Level: Warn, Subject: "jail " + c.Name, Unfinished: true,
				Remedy: "check the load of the server, and the network to it",
				Found: fmt.Sprintf(
					"%s: its storage %sanswers, but the jail could not be checked to the end within %v%s", c.Root,
					c.root().storageName(), r.limit.Round(time.Second), r.nameSilentJails())})
			return
		}
	}
}

// nameSilentJails names the jails whose storage is silent, for which the check of another one may wait.
func (r *round) nameSilentJails() string {
	var names []string
	for _, c := range r.jails {
		if slices.ContainsFunc(c.waits, func(w wait) bool { return !w.hasAnswered(time.Now()) }) {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", perhaps because of the silent storage of " + strings.Join(names, ", ")
}

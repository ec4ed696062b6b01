// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	jailcheck "github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/lease"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/oneline"
)

// jails runs gojail's own check for conditions that would make a launch on this node fail:
// missing or hung storage, missing mount targets, a library of another release.
func jails(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	n := newJailNode(h, s)
	if !mayExist(n.Config) {
		path, named := node.PluginConfig(findSlurmConfDir(h), h.Node)
		if !named {
			return check.NewFinding(check.NotApplicable, "no jails: %s does not exist", n.Config)
		}
		n.Config = path // Slurm still requests jails: without the file every step fails
	}
	if n.LibDir == "" {
		return check.NewFinding(check.Unknown, "cannot determine where gojail is installed; set libdir in [jail]")
	}
	var p problems
	before, limit := readJailState(h), jailLimit
	if end, limited := ctx.Deadline(); limited {
		// the rest is for the answer: a finding that was not given names neither jail nor storage
		limit = time.Until(end) * 4 / 5
	}
	silent := map[string]bool{} // by the subjects of findings
	now := jailState{Memory: jailcheck.Watch(n, before.Memory, h.Now(), limit, func(f jailcheck.Finding) {
		silent[f.Subject] = silent[f.Subject] || f.Silent
		judgeJail(&p, f)
	})}
	if !h.DryRun {
		tellStore(ctx, h, n, silent)
	}
	f := p.buildFinding("all jails can be assembled")
	if f.Verdict == check.Fail {
		now.Text = f.Text
	}
	f.State, _ = json.Marshal(now)
	return f
}

// leaseTimeout is the maximum timeout for the store of jails.
const leaseTimeout = time.Second

// tellStore tells the store which versions of jails this node uses. What it cannot tell keeps versions in the store. It
// leaves half of the time to the answer of the check, and does not wait for a store whose jails were silent just now.
func tellStore(ctx context.Context, h *check.Host, n jailcheck.Node, silent map[string]bool) {
	c, err := node.Load(n.Config, h.Node)
	if err != nil || c.Store == "" {
		return
	}
	for name, j := range c.Jails {
		if _, below := c.CutStore(j.Root); below && silent["jail "+name] {
			return
		}
	}
	s, err := state.OpenState(n.State)
	if err != nil {
		return
	}
	left := jailLimit
	if end, limited := ctx.Deadline(); limited {
		left = time.Until(end)
	}
	ctx, cancel := context.WithTimeout(ctx, limitLease(left))
	defer cancel()
	lease.Refresh(ctx, s, c, false)
}

// limitLease returns the time for the store, of what is left of the check's time.
func limitLease(left time.Duration) time.Duration { return min(leaseTimeout, left/2) }

// jailLimit is the time for the jails if the check has no deadline.
const jailLimit = 6500 * time.Millisecond

// jailState is what the check of jails remembers.
type jailState struct {
	jailcheck.Memory
	Text string `json:"text,omitempty"` // the last finding, if it was a failure
}

// readJailState returns the state of the last run, or an empty one.
func readJailState(h *check.Host) (s jailState) {
	if json.Unmarshal(h.State, &s) != nil {
		return jailState{}
	}
	return s
}

// recallJails returns the finding of the last run if the process of that run still hangs in the storage
// of a jail: it named the jail.
func recallJails(h *check.Host) string { return readJailState(h).Text }

// judgeJail adds a finding of gojail's check. Conditions that users can cause do not drain the
// node, since users could cause them on all nodes.
func judgeJail(p *problems, f jailcheck.Finding) {
	if f.Version != "" {
		p.metrics = append(p.metrics, check.Metric{Name: "jail_template_current", Value: boolValue(!f.Behind),
			Help: "1 if the jail's template on this node has the current version of the store, 0 if it has an " +
				"older one.",
			Labels: map[string]string{"jail": strings.TrimPrefix(f.Subject, "jail "), "version": f.Version}})
	}
	switch f.Level {
	case jailcheck.Fail:
		tell := p.addFailure
		if f.Content {
			tell = p.addWarning
		}
		tell("%s: %s", f.Subject, f.Found)
		if f.Silent && !f.Content {
			p.silent++
		}
		if f.Remedy != "" && !slices.Contains(p.detail, oneline.Printable(f.Remedy)) {
			p.addNote("%s", f.Remedy)
		}
	case jailcheck.Warn:
		switch {
		case f.Unfinished: // neither good nor bad
			p.addUnknown("%s: %s", f.Subject, f.Found)
			return
		case f.Alert:
			p.addWarning("%s: %s", f.Subject, f.Found)
		}
		// Conditions that only cost time or are unexpected are left to `gojail check`.
		p.addNote("%s: %s", f.Subject, f.Found)
	}
}

// leftovers warns of jobs whose cleanup failed and has not been repeated since. A job that
// gojail knows and that has no Slurm process does not count: an allocation between two of its
// steps looks the same.
func leftovers(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	if !mayExist(s.Jail.Config) {
		return check.NewFinding(check.NotApplicable, "no jails: %s does not exist", s.Jail.Config)
	}
	path := newJailNode(h, s).State
	if !mayExist(path) {
		return check.NewFinding(check.OK, "no job has had a jail since the node booted")
	}
	state, err := state.OpenState(path)
	if err != nil {
		return check.NewFinding(check.Unknown, "%s", formatLine(err.Error()))
	}
	var before []string
	if json.Unmarshal(h.State, &before) != nil {
		before = nil
	}
	now := state.Ended()
	var p problems
	for _, job := range now {
		if slices.Contains(before, job) { // a single run may see a cleanup in progress
			p.addWarning("gojail still holds resources of ended jobs")
			p.addNote("job %s", job)
		}
	}
	f := p.buildFinding("no resources of ended jobs remain")
	f.State, _ = json.Marshal(now)
	return f
}

// newJailNode returns the paths of gojail on this node, from the settings or their defaults.
func newJailNode(h *check.Host, s *check.Settings) jailcheck.Node {
	n := jailcheck.Node{Config: s.Jail.Config, State: s.Jail.State, Name: h.Node, LibDir: s.Jail.LibDir}
	if n.State == "" {
		n.State = contract.DefaultState
		if c, err := node.Load(n.Config, n.Name); err == nil {
			n.State = node.PluginState(c)
		}
	}
	n.State = strings.ReplaceAll(n.State, "%n", h.Node)
	if own, err := os.Executable(); n.LibDir == "" && err == nil {
		n.LibDir = filepath.Join(filepath.Dir(own), "../lib/gojail") // the layout of make install
	}
	return n
}

// mayExist reports whether a path exists or its absence is uncertain.
func mayExist(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	jailcheck "github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/internal/tomlfile"
)

// jails asks gojail itself what would make a launch on this node fail: storage
// that is gone or hangs, missing mount targets, a library of another release.
func jails(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	n := jailNode(h, s)
	if !present(n.Config) {
		path, named := node.PluginConfig(slurmConfDir(h), h.Node)
		if !named {
			return check.Found(check.NotApplicable, "no jails: there is no %s", n.Config)
		}
		n.Config = path // Slurm asks for jails all the same: every step fails without it
	}
	if n.LibDir == "" {
		return check.Found(check.Unknown, "cannot find out where gojail is installed; write libdir in [jail]")
	}
	var p problems
	jailcheck.Check(n, func(f jailcheck.Finding) { judgeJail(&p, f) })
	return p.finding("jails can be assembled")
}

// judgeJail: what users can bring about drains no node, for they could do so on all.
func judgeJail(p *problems, f jailcheck.Finding) {
	switch f.Level {
	case jailcheck.Fail:
		tell := p.failed
		if f.Content {
			tell = p.warned
		}
		tell("%s: %s", f.Subject, f.Found)
		if f.Remedy != "" && !slices.Contains(p.detail, tomlfile.Printable(f.Remedy)) {
			p.note("%s", f.Remedy)
		}
	case jailcheck.Warn: // what costs time or surprises somebody is for `gojail check`
		p.note("%s: %s", f.Subject, f.Found)
	}
}

// leftovers are jobs whose end failed, and that nothing has made up for since. A job that gojail knows of and that has no
// process of Slurm's is none: an allocation between two of its steps looks the same.
func leftovers(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	if !present(s.Jail.Config) {
		return check.Found(check.NotApplicable, "no jails: there is no %s", s.Jail.Config)
	}
	path := jailNode(h, s).State
	if !present(path) {
		return check.Found(check.OK, "no job has had a jail since the node booted")
	}
	state, err := state.OpenState(path)
	if err != nil {
		return check.Found(check.Unknown, "%s", line(err.Error()))
	}
	var before []string
	if json.Unmarshal(h.Kept, &before) != nil {
		before = nil
	}
	now := state.Ended()
	var p problems
	for _, job := range now {
		if slices.Contains(before, job) { // one run may see what is being made up for
			p.warned("gojail still has something of jobs that have ended")
			p.note("job %s", job)
		}
	}
	f := p.finding("nothing is left of jobs that have ended")
	f.Keep, _ = json.Marshal(now)
	return f
}

func jailNode(h *check.Host, s *check.Settings) jailcheck.Node {
	n := jailcheck.Node{Config: s.Jail.Config, State: s.Jail.State, Name: h.Node, LibDir: s.Jail.LibDir}
	if n.State == "" {
		n.State = contract.DefaultState
		if c, err := node.Load(n.Config, n.Name); err == nil {
			n.State = node.PluginState(c)
		}
	}
	n.State = strings.ReplaceAll(n.State, "%n", h.Node)
	if own, err := os.Executable(); n.LibDir == "" && err == nil {
		n.LibDir = filepath.Join(filepath.Dir(own), "../lib/gojail") // as make install has it
	}
	return n
}

// stepJobs finds the jobs of root's slurmstepds by the title that they give themselves: "slurmstepd: [17.batch]".
func stepJobs(h *check.Host) (map[string]bool, error) {
	all, err := listProcesses(h)
	if err != nil {
		return nil, err
	}
	jobs := map[string]bool{}
	for _, one := range all {
		if one.Name != "slurmstepd" || !one.root() {
			continue // the title of others is not read: that can hang
		}
		title, err := read(one.dir + "/cmdline")
		if err != nil {
			continue
		}
		_, step, found := bytes.Cut(title, []byte("["))
		job, _, found2 := bytes.Cut(step, []byte("."))
		if found && found2 {
			jobs[string(job)] = true
		}
	}
	return jobs, nil
}

// present is false only for what is known not to be there.
func present(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

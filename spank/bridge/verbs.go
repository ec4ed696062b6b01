// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/lease"
	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/gojail/sandbox"
	"github.com/gojail/gojail/gojail/site"
	"github.com/gojail/gojail/gojail/state"
)

// verbs are the requests of gojail-launcher.
var verbs = map[string]func(*request) ([]mount.Tree, error){
	"site":   (*request).writeSite,
	"root":   (*request).attachRoot,
	"stage":  (*request).assembleStage,
	"jail":   (*request).assembleJail,
	"mounts": (*request).openMounts,
	"ids":    (*request).findIDs,
	"range":  (*request).openRange,
	"net":    (*request).attachNet,
	"epilog": (*request).endJob,
	"clean":  (*request).finishJob,
	"boot":   (*request).sweepNode,
	"logout": (*request).endLogin,
	"ended":  (*request).writeSummary,
}

// request is a command line of gojail-launcher: VERB [name=value]...
type request struct {
	verb  string
	words map[string]string

	answer string // text for the caller
}

// known are the names in include/gojail.h. Some are only for the launcher.
var known = []string{
	"state", "config", "node", "jail", "key", "job", "uid", "gid", "groups", "mounts", "script", "deadline",
	"net", "gpus", "nics", "holder", "root", "range", "data", "parent", "scratch",
	"source", "replace", "summary", "error", "begun", "ended", "field",
}

func parseRequest(words []string) (*request, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("libgojail.so was called without a verb; reinstall gojail on this node")
	}
	r := &request{verb: words[0], words: map[string]string{
		"state": contract.DefaultState, "config": contract.DefaultConfig,
	}}
	if verbs[r.verb] == nil {
		return nil, fmt.Errorf("libgojail.so: unknown verb %q; known: %s", r.verb, strings.Join(slices.Sorted(maps.Keys(verbs)), ", "))
	}
	for _, word := range words[1:] {
		name, value, is := strings.Cut(word, "=")
		if !is || !slices.Contains(known, name) {
			return nil, fmt.Errorf("%s: unknown word %q; known, each with a value: %s", r.verb, word, strings.Join(known, "=, "))
		}
		if value != "" {
			r.words[name] = value
		}
	}
	return r, nil
}

func (r *request) runVerb() ([]mount.Tree, error) { return verbs[r.verb](r) }

func (r *request) loadConfig() (*config.Config, error) {
	return node.Load(r.words["config"], r.words["node"])
}

// findDeadline returns the time at which the launcher's caller stops waiting.
func (r *request) findDeadline() time.Time {
	ms, err := strconv.Atoi(r.words["deadline"])
	if err != nil || ms <= 0 {
		return time.Now().Add(contract.DefaultDeadline)
	}
	return time.Now().Add(time.Duration(ms) * time.Millisecond)
}

func (r *request) writeSite() ([]mount.Tree, error) {
	state, err := state.OpenState(r.words["state"])
	if err != nil {
		return nil, err
	}
	c, err := r.loadConfig()
	if err != nil {
		return nil, err
	}
	if c.Networks, err = r.readNetworks(); err != nil {
		return nil, err
	}
	if err := site.Write(c, state.Path(), r.findDeadline().Add(-leave)); err != nil {
		return nil, err
	}
	sandbox.EndUnusedZygotes(state, c) // the sweep retries after an error
	return nil, nil
}

func (r *request) loadJail() (*config.Config, *config.Jail, error) {
	c, err := r.loadConfig()
	if err != nil {
		return nil, nil, err
	}
	j, err := c.Jail(r.words["jail"])
	return c, j, err
}

// attachRoot mounts the jail's root for stage and jail, which come next, in copies of this mount namespace.
func (r *request) attachRoot() ([]mount.Tree, error) {
	c, j, err := r.loadJail()
	if err != nil {
		return nil, err
	}
	state, err := state.OpenState(r.words["state"])
	if err != nil {
		return nil, err
	}
	root, err := lease.Around(state, c, j, func() (int, error) { return mount.AttachRoot(j) })
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	return nil, mount.MakeLocal(c, j, root)
}

// assembleView assembles the view that plan makes of the facts.
func (r *request) assembleView(plan func(*config.Config, *config.Jail, *node.HostFacts) (*plan.View, error)) error {
	c, j, err := r.loadJail()
	if err != nil {
		return err
	}
	root, err := mount.OpenAttachedRoot()
	if err != nil {
		return err
	}
	defer unix.Close(root)
	facts, err := node.ReadHostWith(c, j, r.words["state"], root)
	if err != nil {
		return err
	}
	view, err := plan(c, j, facts)
	if err == nil && !view.TmpfsRoot {
		err = mount.PlanSkeleton(c, j, view, root)
	}
	if err != nil {
		return err
	}
	return mount.Apply(view, j.Name, root)
}

func (r *request) assembleStage() ([]mount.Tree, error) { return nil, r.assembleView(plan.Stage) }

// assembleJail assembles a jail. It writes config.json first: the state directory is not visible afterwards.
func (r *request) assembleJail() ([]mount.Tree, error) {
	return nil, r.assembleView(func(c *config.Config, j *config.Jail, facts *node.HostFacts) (*plan.View, error) {
		view, err := plan.Jail(c, j, facts)
		if err != nil {
			return nil, err
		}
		state, err := state.OpenState(r.words["state"])
		if err != nil {
			return nil, err
		}
		text, err := json.MarshalIndent(view.Spec, "", "  ")
		if err != nil {
			return nil, err
		}
		return view, state.WriteSpec(j.Name, text)
	})
}

// endJob ends a job. It works without a valid configuration.
func (r *request) endJob() ([]mount.Tree, error) {
	state, scratch, err := r.openForEnd()
	if err != nil {
		return nil, err
	}
	r.answer = r.describeNetUse(state, r.words["job"])
	// The VFs first: while the job's namespace lives, they can be moved out of it.
	return nil, errors.Join(r.releaseNet(r.words["job"]), sandbox.EndJob(state, scratch, r.words["job"], r.findDeadline().Add(-leave)))
}

// openForEnd returns what is needed to end a sandbox: the state directory and the scratch directory.
func (r *request) openForEnd() (*state.State, string, error) {
	s, err := state.OpenState(r.words["state"])
	if err != nil {
		return nil, "", err
	}
	scratch, err := r.findScratch(s)
	return s, scratch, err
}

// findScratch returns the scratch directory from the site file, with which jobs were built, or else from the
// configuration.
func (r *request) findScratch(state *state.State) (string, error) {
	if scratch := state.Scratch(); scratch != "" {
		return scratch, nil
	}
	c, err := r.loadConfig()
	if err != nil {
		return "", err
	}
	return c.Scratch, nil
}

// finishJob does the slow work after the end of a job, for which Slurm does not wait.
func (r *request) finishJob() ([]mount.Tree, error) {
	until := r.findDeadline().Add(-leave)
	state, err := state.OpenState(r.words["state"])
	if err != nil {
		return nil, err
	}
	sandbox.RetryEnded(state, r.loadConfig, until, r.releaseNet)
	var trashes []string
	if noted := r.words["scratch"]; noted != "" {
		trashes = append(trashes, noted)
	}
	scratch, err := r.findScratch(state)
	if err == nil && !slices.Contains(trashes, scratch) {
		trashes = append(trashes, scratch)
	}
	failed := sandbox.EmptyTrash(trashes, r.words["job"], until)
	if failed != nil && !contract.IsLogin(r.words["job"]) { // the user may be back by now
		state.NoteEnded(r.words["job"])
	}
	return nil, errors.Join(err, failed)
}

// refreshLease tells the store what this node uses. Where it cannot, versions are kept: it fails nothing.
func (r *request) refreshLease(state *state.State, until time.Time) {
	c, err := r.loadConfig()
	if err != nil {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), earlier(until, time.Now().Add(leasePatience)))
	defer cancel()
	lease.Refresh(ctx, state, c, false)
}

// leasePatience is how long the store is waited for.
const leasePatience = 5 * time.Second

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// leave is the time reserved before the launcher kills this process, whose deadline starts earlier: enough for an error
// with the reason to reach the caller.
const leave = time.Second

func (r *request) sweepNode() ([]mount.Tree, error) {
	until := r.findDeadline().Add(-leave)
	c, err := r.loadConfig()
	if err != nil {
		return nil, err
	}
	state, err := state.OpenState(r.words["state"])
	if err != nil {
		return nil, err
	}
	// The site file also has settings of slurm.conf and gres.conf, which slurmd reads again when it
	// starts.
	if _, missing := os.Stat(filepath.Join(state.Path(), contract.SiteFile)); missing == nil {
		if c.Networks, err = r.readNetworks(); err == nil {
			err = site.Write(c, state.Path(), until)
		}
	}
	report, err2 := sandbox.Sweep(state, c)
	err = errors.Join(err, err2)
	err = errors.Join(err, r.sweepNet(c, sandbox.Alive(state, c)))
	r.refreshLease(state, until)
	_, err2 = report.EmptyTrash(until) // last, since it may use all the remaining time
	return nil, errors.Join(err, err2)
}

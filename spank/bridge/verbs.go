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
	"site":      (*request).writeSite,
	"root":      (*request).attachRoot,
	"stage":     (*request).assembleStage,
	"jail":      (*request).assembleJail,
	"mounts":    (*request).openMounts,
	"ids":       (*request).findIDs,
	"range":     (*request).openRange,
	"net":       (*request).attachNet,
	"netfiles":  (*request).showNetFiles,
	"epilog":    (*request).endJob,
	"earlier":   (*request).endEarlier,
	"clean":     (*request).finishJob,
	"boot":      (*request).sweepNode,
	"logout":    (*request).endLogin,
	"ended":     (*request).writeSummary,
	"allocated": (*request).checkAllocated,
}

// request is a command line of gojail-launcher: VERB [name=value]...
type request struct {
	verb  string
	words map[string]string

	deadline time.Time // when the launcher's caller stops waiting
	answer   string    // text for the caller
}

// known are the names in include/gojail.h. Some are only for the launcher.
var known = []string{
	"state", "config", "node", "jail", "key", "job", "uid", "gid", "groups", "mounts", "script", "deadline",
	"net", "gpus", "nics", "holder", "root", "range", "data", "parent", "scratch",
	"source", "replace", "unused", "allocated", "ids", "any", "sockets", "summary", "error", "begun", "ended", "field",
}

func parseRequest(words []string) (*request, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("libgojail.so was called without a verb; reinstall gojail on this node")
	}
	r := &request{verb: words[0], words: map[string]string{
		"state": contract.DefaultState, "config": contract.DefaultConfig,
	}}
	if verbs[r.verb] == nil {
		return nil, fmt.Errorf("libgojail.so: unknown verb %q; known: %s", r.verb,
			strings.Join(slices.Sorted(maps.Keys(verbs)), ", "))
	}
	for _, word := range words[1:] {
		name, value, ok := strings.Cut(word, "=")
		if !ok || !slices.Contains(known, name) {
			return nil, fmt.Errorf("%s: unknown word %q; known, each with a value: %s", r.verb, word,
				strings.Join(known, "=, "))
		}
		if value != "" {
			r.words[name] = value
		}
	}
	r.deadline = time.Now().Add(r.readDeadline())
	return r, nil
}

func (r *request) runVerb() ([]mount.Tree, error) { return verbs[r.verb](r) }

func (r *request) loadConfig() (*config.Config, error) {
	return node.Load(r.words["config"], r.words["node"])
}

func (r *request) openState() (*state.State, error) { return state.OpenState(r.words["state"]) }

// openNode opens the state directory and loads the configuration.
func (r *request) openNode() (*state.State, *config.Config, error) {
	s, err := r.openState()
	if err != nil {
		return nil, nil, err
	}
	c, err := r.loadConfig()
	return s, c, err
}

// openJail is openNode for a request about a jail.
func (r *request) openJail() (*state.State, *config.Config, *config.Jail, error) {
	c, j, err := r.loadJail()
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := r.openState()
	return s, c, j, err
}

// readDeadline returns how long the launcher's caller waits.
func (r *request) readDeadline() time.Duration {
	ms, err := strconv.Atoi(r.words["deadline"])
	if err != nil || ms <= 0 {
		return contract.DefaultDeadline
	}
	return time.Duration(ms) * time.Millisecond
}

func (r *request) writeSite() ([]mount.Tree, error) {
	state, c, err := r.openNode()
	if err != nil {
		return nil, err
	}
	if err := r.writeSiteFile(state, c); err != nil {
		return nil, err
	}
	sandbox.EndUnusedZygotes(state, c) // the sweep retries after an error
	return nil, nil
}

func (r *request) writeSiteFile(state *state.State, c *config.Config) error {
	networks, err := r.readNetworks()
	if err != nil {
		return err
	}
	return site.Write(c, networks, state.Path(), r.lastMoment())
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
	state, c, j, err := r.openJail()
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
	facts, err := node.ReadHostWith(c, node.ReadHardware(c), j, r.words["state"], root)
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
		state, err := r.openState()
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

// lastMoment returns the time at which a request stops waiting and says what it waits for.
func (r *request) lastMoment() time.Time { return r.deadline.Add(-leave) }

func (r *request) sweepNode() ([]mount.Tree, error) {
	until := r.lastMoment()
	state, c, err := r.openNode()
	if err != nil {
		return nil, err
	}
	// The site file also has settings of slurm.conf and gres.conf, which slurmd reads again when it
	// starts.
	if _, missing := os.Stat(filepath.Join(state.Path(), contract.SiteFile)); missing == nil {
		err = r.writeSiteFile(state, c)
	}
	report, err2 := sandbox.Sweep(state, c)
	err = errors.Join(err, err2)
	err = errors.Join(err, r.sweepNet(c, sandbox.Alive(state, c)))
	r.refreshLease(state, until)
	_, err2 = report.EmptyTrash(until) // last, since it may use all the remaining time
	return nil, errors.Join(err, err2)
}

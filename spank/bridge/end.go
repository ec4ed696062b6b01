// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/sandbox"
	"github.com/gojail/gojail/gojail/state"
)

// endTime is the time reserved for the end of a job's sandbox, after its VFs.
const endTime = 2 * time.Second

// endJob ends a job. It works without a valid configuration.
func (r *request) endJob() ([]mount.Tree, error) {
	state, scratch, err := r.openForEnd()
	if err != nil {
		return nil, err
	}
	r.answer = r.describeNetUse(state, r.words["job"])
	// The VFs first: while the job's namespace lives, they can be moved out of it. One that is late must not keep the
	// sandbox.
	until := r.lastMoment()
	failed := r.releaseNet(r.words["job"], until.Add(-min(endTime, time.Until(until)/2)))
	if err := sandbox.EndJob(state, scratch, r.words["job"], until); err != nil || failed != nil {
		return nil, errors.Join(failed, err)
	}
	// What was built meanwhile for a session (allocation.h), under the job's lock, may have got VFs; nothing builds
	// more now.
	return nil, r.releaseNet(r.words["job"], until)
}

// endEarlier ends what an earlier job of the same number left.
func (r *request) endEarlier() ([]mount.Tree, error) {
	s, c, err := r.openNode()
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(r.words["uid"], 10, 32)
	if err != nil {
		return nil, fmt.Errorf("%s: uid=%q is not a user", r.verb, r.words["uid"])
	}
	present, until := sandbox.Present{Job: r.words["job"], UID: uint32(uid)}, r.lastMoment()
	if text := r.words["begun"]; text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: begun=%q is not a time", r.verb, text)
		}
		present.Begun = time.Unix(seconds, 0)
	}
	return nil, sandbox.EndEarlier(s, c, present, until, func(job string) error { return r.releaseNet(job, until) })
}

// openForEnd returns what is needed to end a sandbox: the state directory and the scratch directory.
func (r *request) openForEnd() (*state.State, string, error) {
	s, err := r.openState()
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
	until := r.lastMoment()
	state, err := r.openState()
	if err != nil {
		return nil, err
	}
	sandbox.RetryEnded(state, r.loadConfig, until,
		func(job string) error { return r.releaseNet(job, earlier(until, time.Now().Add(time.Minute))) })
	var trashes []string
	if noted := r.words["scratch"]; noted != "" {
		trashes = append(trashes, noted)
	}
	scratch, err := r.findScratch(state)
	if err == nil && !slices.Contains(trashes, scratch) {
		trashes = append(trashes, scratch)
	}
	failed := sandbox.EmptyTrash(trashes, r.words["job"], until)
	if failed != nil {
		sandbox.NoteUnremoved(state, r.words["job"])
	}
	return nil, errors.Join(err, failed)
}

// endLogin ends the sandbox of a user's sessions on a login node, unless it is used.
func (r *request) endLogin() ([]mount.Tree, error) {
	state, scratch, err := r.openForEnd()
	if err != nil {
		return nil, err
	}
	return nil, sandbox.EndLogin(state, scratch, r.words["job"], r.lastMoment())
}

// checkAllocated requires that Slurm says of the job that it is the user's and has this node.
func (r *request) checkAllocated() ([]mount.Tree, error) {
	s, c, err := r.openNode()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithDeadline(context.Background(), r.lastMoment())
	defer cancel()
	return nil, sandbox.CheckAllocated(ctx, s, c, r.words["job"], r.words["uid"])
}

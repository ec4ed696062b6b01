// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/sandbox"
	"github.com/gojail/gojail/gojail/state"
)

// endLogin ends the sandbox of a user's sessions on a login node, unless it is used.
func (r *request) endLogin() ([]mount.Tree, error) {
	state, err := state.OpenState(r.words["state"])
	if err != nil {
		return nil, err
	}
	scratch, err := r.findScratch(state)
	if err != nil {
		return nil, err
	}
	return nil, sandbox.EndLogin(state, scratch, r.words["job"], r.findDeadline().Add(-leave))
}

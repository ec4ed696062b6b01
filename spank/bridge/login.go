// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/sandbox"
)

// endLogin ends the sandbox of a user's sessions on a login node, unless it is used.
func (r *request) endLogin() ([]mount.Tree, error) {
	state, scratch, err := r.openForEnd()
	if err != nil {
		return nil, err
	}
	return nil, sandbox.EndLogin(state, scratch, r.words["job"], r.lastMoment())
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/sandbox"
)

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

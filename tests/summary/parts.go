// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// runParts runs so many parts of the command at the same time, then once more the few tests of each part that failed, and adds all to r. Each
// part has a run of its own: two parts may have tests of one package, and each must come to an end and not hang.
func (r *run) runParts(c command, parts int) {
	runs := make([]*run, parts)
	var wait sync.WaitGroup
	for i := range runs {
		part := newRun(r.qualifies)
		part.each, runs[i] = r.each, part
		wait.Go(func() { part.execute(append(slices.Clone(c.argv), fmt.Sprintf("%d/%d", i+1, parts)), c.env) })
	}
	wait.Wait()
	for _, part := range runs {
		part.runFailed(c)
		r.add(part)
	}
}

// add adds what a part has had to the run.
func (r *run) add(part *run) {
	r.passed, r.failed, r.skipped = append(r.passed, part.passed...), append(r.failed, part.failed...), append(r.skipped, part.skipped...)
	r.again, r.restarts, r.orders = append(r.again, part.again...), append(r.restarts, part.restarts...), append(r.orders, part.orders...)
	r.broken = append(r.broken, part.broken...)
	for name := range part.running {
		r.broken = append(r.broken, name+notEnded)
	}
	maps.Copy(r.reasons, part.reasons)
	maps.Copy(r.seconds, part.seconds)
}

// SPDX-License-Identifier: Apache-2.0

package check

import (
	"time"

	"github.com/gojail/gojail/gojail/config"
)

const (
	watchAll  = 10 * time.Minute // after which everything in the jails is checked again
	watchSlow = 2 * time.Minute  // the same after a check that storage was too slow for
)

// Memory is what one Watch passes to the next.
type Memory struct {
	Config string            `json:"config"` // version of the configuration
	Due    int64             `json:"due"`    // when everything is to be checked again, in seconds
	Bad    bool              `json:"bad"`    // whether a jail had a failure
	Full   bool              `json:"full"`   // whether the scratch directory was full
	Roots  map[string]string `json:"roots"`  // what the roots led to
}

// Watch is Check for the health check, which runs twice a minute on each node: it asks each storage once,
// and checks the jails in it only if the configuration or a root has changed, if there was a failure, or
// after ten minutes. It takes limit at most.
func Watch(n Node, before Memory, now time.Time, limit time.Duration, report func(Finding)) Memory {
	end := time.Now().Add(limit)
	after := Memory{Due: now.Add(watchAll).Unix()}
	unfinished := false
	c := newChecker(n, func(f Finding) {
		after.Bad = after.Bad || f.Level == Fail
		unfinished = unfinished || f.Unfinished
		report(f)
	})
	c.watch, c.wasFull = true, before.Full
	able := c.checkNode()
	after.Full = c.isFull
	if !able {
		after.Bad = true
		return after
	}
	after.Config, after.Roots = c.config.Identity.String(), map[string]string{}
	due := time.Unix(before.Due, 0)
	// the clock was set back
	all := before.Bad || before.Config != after.Config || !now.Before(due) || due.After(now.Add(watchAll))
	r := c.checkJails(time.Until(end), func(j *config.Jail, root *probe) bool {
		return all || root.err != nil || root.id != before.Roots[j.Name]
	})
	for _, jail := range r.jails {
		if root := jail.root(); root.hasAnswered(now) {
			after.Roots[jail.Name] = root.id
		}
	}
	switch {
	case unfinished && before.Bad:
		after.Bad = true
	case unfinished:
		after.Due = now.Add(watchSlow).Unix()
	case !all:
		after.Due = before.Due
	}
	return after
}

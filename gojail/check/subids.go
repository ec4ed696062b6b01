// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/gojail/sandbox"
	"github.com/gojail/gojail/gojail/subids"
)

const (
	subidsTimeout = 20 * time.Second // for all that is asked of the name service and of Slurm
	subidsMost    = 5                // users that are named
)

// checkSubIDs reports users whose --jail-root=range is refused, because an id of their range is somebody else's, and
// says what gojail cannot know of that. The health check does without: other users' jobs do not suffer from it, and the
// name service may hang.
func (c *checker) checkSubIDs() {
	const subject = "subordinate ids"
	if c.watch || !slices.ContainsFunc(c.config.JailNames(), func(name string) bool {
		return slices.Contains(c.config.Jails[name].Isolation.JailRoot, "range")
	}) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), subidsTimeout)
	defer cancel()
	source := subids.Host
	if c.node.subIDs != nil {
		source = *c.node.subIDs
	}
	t, err := sandbox.ReadIDs(ctx, source, c.config)
	if err != nil {
		c.fail(subject, "", "--jail-root=range: %v", err)
		return
	}
	good, users, refused := t.Check()
	for i, err := range refused {
		if i == subidsMost {
			c.fail(subject, "correct the lines above, and run gojail check again",
				"--jail-root=range is refused to %d more users", len(refused)-i)
			break
		}
		c.fail(subject, "", "%v", err)
	}
	if users == 0 {
		if len(refused) == 0 {
			c.warn(subject,
				fmt.Sprintf("write a line such as alice:100000:%d into both, or remove \"range\" from jail_root",
					subids.Count),
				"--jail-root=range is refused to all users: %[1]s/subuid and %[1]s/subgid give nobody %[2]d ids",
				source.Etc, subids.Count)
		}
		return
	}
	if err := good.Probe(ctx, source); err != nil {
		c.fail(subject, "", "%v", err)
	} else {
		c.ok(subject, "--jail-root=range: nobody else is known to have an id of the ranges of %d users", users)
	}
	if len(t.Unlisted) > 0 {
		c.warn(subject, fmt.Sprintf("for each range verify that this prints nothing, as here for the first: getent "+
			"passwd $(seq %d %d); getent group $(seq %d %d)",
			good.UID, good.UID+subids.Count-1, good.GID, good.GID+subids.Count-1),
			"--jail-root=range: %s of nsswitch.conf may have accounts in the ranges that it does not list: gojail "+
				"compares those with processes here or jobs of Slurm only", strings.Join(t.Unlisted, ", "))
	}
}

// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"fmt"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/rmtree"
)

// planTargets returns a function that creates the mount targets of a jail in a new version, for each jail of
// gojail.toml that uses it, or else for a jail with the defaults.
func (j *jailCommand) planTargets(name string) (func(root string) ([]string, error), error) {
	c, err := j.LoadConfig()
	if err != nil {
		return nil, fmt.Errorf("%w; to create no mount targets, give --no-targets", err)
	}
	return func(root string) ([]string, error) {
		jails, err := findUsers(c, name)
		if err != nil {
			return nil, err
		}
		var made []string
		for _, jail := range jails {
			jail.Root = root
			targets, err := makeTargetsIn(c, &jail, j.State)
			for _, t := range targets {
				made = append(made, t.String())
			}
			if err != nil {
				return nil,
					fmt.Errorf("cannot create the mount targets of jail %s: %w; to create none, give --no-targets",
						jail.Name, err)
			}
		}
		return made, nil
	}, nil
}

// findUsers returns copies of the jails whose root is a jail of the store.
func findUsers(c *config.Config, name string) (list []config.Jail, err error) {
	for _, other := range c.JailNames() {
		if c.Jails[other].Versions == name {
			list = append(list, *c.Jails[other])
		}
	}
	if len(list) > 0 {
		return list, nil
	}
	standard, err := c.StandardJail(name, "/"+name)
	if err != nil {
		return nil, err
	}
	return []config.Jail{*standard}, nil
}

// targetsTimeout is how long the storage of the new version has.
const targetsTimeout = 30 * time.Second

// makeTargetsIn creates the mount targets of a jail in its root, and removes the lock file that this leaves: it has no
// use in a root that is being built.
func makeTargetsIn(c *config.Config, jail *config.Jail, state string) ([]plan.Target, error) {
	facts, err := node.ReadHost(c, jail, state)
	if err != nil {
		return nil, err
	}
	view, err := plan.Jail(c, jail, facts)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(targetsTimeout)
	// one that came with the source, of any kind
	if err := rmtree.Remove(jail.Root, contract.RootLock, until); err != nil {
		return nil, err
	}
	made, err := mount.MakeTargets(c, jail, view, until)
	if err == nil {
		err = rmtree.Remove(jail.Root, contract.RootLock, until)
	}
	return made, err
}

// SPDX-License-Identifier: Apache-2.0

package config

import "fmt"

// ListWarnings returns warnings of permitted, but probably wrong settings, one line each.
func (c *Config) ListWarnings() []string {
	var w []string
	warn := func(line int, format string, args ...any) {
		w = append(w, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, args...))
	}
	users := c.listPoolUsers()
	for i, p := range c.Pools {
		if users[p] == "" {
			warn(p.Line, "pool %q: no rail uses it", p.Name)
			continue
		}
		for _, o := range c.Pools[:i] {
			if o.Subnet == p.Subnet && users[o] != "" {
				warn(p.Line, "%s and %s share the subnet %s: programs that choose an interface by the main routing "+
					"table use one of them for all traffic; give each its own subnet", users[o], users[p], p.Subnet)
			}
		}
	}
	for _, r := range c.Rails {
		if r.Policy.AppliesTo(c.Node) {
			r.warnAboutPools(c.Node, warn)
		}
	}
	c.warnAboutRoutes(warn)
	if len(c.Rails) > 0 && c.Control.Pool == nil {
		warn(c.Rails[0].Line, "without [control], a job with a network cannot reach slurmctld: srun fails inside it")
	}
	return w
}

// listPoolUsers returns the rail or [control] that uses each pool.
func (c *Config) listPoolUsers() map[*Pool]string {
	users := map[*Pool]string{}
	for _, r := range c.Rails {
		for _, p := range r.Pools {
			users[p] = fmt.Sprintf("rail %q", r.Name)
		}
	}
	if c.Control.Pool != nil {
		users[c.Control.Pool] = "[control]"
	}
	return users
}

// warnAboutPools warns if a pool of the rail has no address for the node or for some of its
// VFs.
func (r *Rail) warnAboutPools(node string, warn func(int, string, ...any)) {
	for _, p := range r.Pools {
		if p.Directory != "" {
			continue
		}
		if node != "" && !p.Nodes.Contains(node) {
			warn(r.Line,
				"rail %q: this node, %s, is not in nodes of the pool %q: a job that asks for the rail fails here",
				r.Name, node, p.Name)
		}
		if p.PerNode < r.Policy.VFs && !r.Policy.Whole {
			warn(p.Line,
				"pool %q: per_node is %d, but the policy %q makes %d VFs on a PF: the last ones have no address",
				p.Name, p.PerNode, r.Policy.Name, r.Policy.VFs)
		}
	}
}

// warnAboutRoutes warns about networks to which two rails have a route: table main has one
// route to each.
func (c *Config) warnAboutRoutes(warn func(int, string, ...any)) {
	first := map[string]*Rail{}
	for _, r := range c.Rails {
		for _, p := range r.Pools {
			for _, route := range p.Routes {
				to := route.To.String()
				if o := first[to]; o != nil {
					warn(p.Line, "rails %q and %q both have a route to %s: programs that do not bind to an address "+
						"use the first", o.Name, r.Name, to)
				} else {
					first[to] = r
				}
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Rule is a rule by which packets from one address are looked up in a table: "PRIORITY: from FROM lookup TABLE".
type Rule struct {
	From     netip.Addr
	Table    int
	Priority int // required: without a priority the kernel adds the same rule repeatedly
}

func (r Rule) String() string {
	return fmt.Sprintf("%d: from %s lookup %d", r.Priority, r.From, r.Table)
}

// AddRule adds a rule; an existing one is no error (before Linux 4.15 the kernel does not
// report EEXIST).
func (n *Namespace) AddRule(r Rule) error {
	err := n.handle.RuleAdd(r.buildMessage())
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return explainError(err, "add the rule %s", r)
}

func (r Rule) buildMessage() *netlink.Rule {
	m := netlink.NewRule()
	m.Family, m.Src, m.Table, m.Priority, m.Protocol = familyOf(r.From), toIPNet(toHostPrefix(r.From)), r.Table,
		r.Priority, routeProtocol
	return m
}

// FlushTables deletes what AddRule, AddRoute and AddFallback added for these tables: the
// rules that lead to them and the routes in them that are marked with routeProtocol. It
// continues after an error and returns all errors.
func (n *Namespace) FlushTables(tables ...int) error {
	var errs []error
	for _, ipv6 := range []bool{false, true} {
		errs = append(errs, n.flushRules(tables, ipv6))
		for _, table := range tables {
			routes, err := n.listRoutes(table, ipv6)
			errs = append(errs, err)
			for _, r := range routes {
				if r.Protocol != routeProtocol {
					continue
				}
				if err := n.handle.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
					errs = append(errs, explainError(err, "flush table %d: delete the route %s", table, r))
				}
			}
		}
	}
	return errors.Join(errs...)
}

func (n *Namespace) flushRules(tables []int, ipv6 bool) error {
	rules, err := n.listRules(ipv6)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range rules {
		for _, table := range tables {
			if r.Protocol == routeProtocol && r.Table == table {
				if err := n.handle.RuleDel(&r); err != nil && !errors.Is(err, unix.ENOENT) {
					errs = append(errs, explainError(err, "delete the rule %s", r))
				}
			}
		}
	}
	return errors.Join(errs...)
}

func (n *Namespace) listRules(ipv6 bool) ([]netlink.Rule, error) {
	version := netlink.FAMILY_V4
	if ipv6 {
		version = netlink.FAMILY_V6
	}
	for range 10 {
		rules, err := n.handle.RuleList(version)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return rules, explainError(err, "list the rules")
		}
	}
	return nil, errors.New("list the rules: they changed ten times meanwhile")
}

// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Rule sends what comes from one address to a table: "PRIORITY: from FROM lookup TABLE".
type Rule struct {
	From     netip.Addr
	Table    int
	Priority int // fixed: without one the kernel adds the same rule again and again
}

func (r Rule) String() string {
	return fmt.Sprintf("%d: from %s lookup %d", r.Priority, r.From, r.Table)
}

// AddRule adds a rule; one that is there is no error (Linux 4.15: before, EEXIST is not told).
func (n *Namespace) AddRule(r Rule) error {
	err := n.handle.RuleAdd(r.message())
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return failed(err, "add the rule %s", r)
}

func (r Rule) message() *netlink.Rule {
	m := netlink.NewRule()
	m.Family, m.Src, m.Table, m.Priority, m.Protocol = family(r.From), ipnet(host(r.From)), r.Table, r.Priority, routeProtocol
	return m
}

// Flush deletes what AddRule, AddRoute and Fallback added for these tables: the
// rules that lead to them and the routes in them that bear Protocol. It goes on
// after an error, and returns all of them.
func (n *Namespace) Flush(tables ...int) error {
	var errs []error
	for _, ipv6 := range []bool{false, true} {
		errs = append(errs, n.flushRules(tables, ipv6))
		for _, table := range tables {
			routes, err := n.routes(table, ipv6)
			errs = append(errs, err)
			for _, r := range routes {
				if r.Protocol != routeProtocol {
					continue
				}
				if err := n.handle.RouteDel(&r); err != nil && !errors.Is(err, unix.ESRCH) {
					errs = append(errs, failed(err, "flush table %d: delete the route %s", table, r))
				}
			}
		}
	}
	return errors.Join(errs...)
}

func (n *Namespace) flushRules(tables []int, ipv6 bool) error {
	rules, err := n.rules(ipv6)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range rules {
		for _, table := range tables {
			if r.Protocol == routeProtocol && r.Table == table {
				if err := n.handle.RuleDel(&r); err != nil && !errors.Is(err, unix.ENOENT) {
					errs = append(errs, failed(err, "delete the rule %s", r))
				}
			}
		}
	}
	return errors.Join(errs...)
}

func (n *Namespace) rules(ipv6 bool) ([]netlink.Rule, error) {
	version := netlink.FAMILY_V4
	if ipv6 {
		version = netlink.FAMILY_V6
	}
	for range 10 {
		rules, err := n.handle.RuleList(version)
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return rules, failed(err, "list the rules")
		}
	}
	return nil, errors.New("list the rules: they changed ten times meanwhile")
}

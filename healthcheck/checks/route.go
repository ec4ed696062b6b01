// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
)

// defaultRoute checks that the default route uses the interface of the control network and that
// the interface is up. controller.go checks the route to the controller.
func defaultRoute(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	v4, err := os.ReadFile(filepath.Join(h.Roots.Proc, "net/route"))
	if err != nil {
		return check.NewFinding(check.Unknown, "cannot read the routes of %s/net/route", h.Roots.Proc)
	}
	v6, _ := os.ReadFile(filepath.Join(h.Roots.Proc, "net/ipv6_route")) // does not exist without IPv6
	if !strings.HasPrefix(string(v4), "Iface") {
		return check.NewFinding(check.Unknown, "cannot parse the routes of %s/net/route", h.Roots.Proc)
	}
	iface := findBestRoute(parseRoutes4(string(v4)))
	if iface == "" {
		iface = findBestRoute(parseRoutes6(string(v6)))
	}
	want := s.Network.Interface
	switch {
	case iface == "" && want == "":
		return check.NewFinding(check.NotApplicable, "the node has no default route, and none is configured")
	case iface == "":
		return check.NewFinding(check.Fail, "the node has no default route")
	case want != "" && iface != want:
		return check.NewFinding(check.Fail, "the default route leads to %.15s instead of %.15s", iface, want)
	}
	state, ok := readSysText(filepath.Join(h.Roots.Sys, "class/net", iface), "operstate")
	switch {
	case !ok:
		return check.NewFinding(check.Unknown, "cannot read the state of %.15s", iface)
	case state == "down", state == "lowerlayerdown":
		return check.NewFinding(check.Fail, "%.15s, which has the default route, is down", iface)
	}
	return check.NewFinding(check.OK, "the default route leads to %.15s, which is up", iface)
}

type route struct {
	iface  string
	metric uint64
}

// parseRoutes4 returns the default routes in /proc/net/route (net/ipv4/fib_trie.c).
func parseRoutes4(table string) (all []route) {
	for row := range strings.Lines(table) {
		f := strings.Fields(row)
		if len(f) < 8 || f[1] != "00000000" || f[7] != "00000000" {
			continue
		}
		flags, err := strconv.ParseUint(f[3], 16, 32)
		metric, err2 := strconv.ParseInt(f[6], 10, 64) // printed as a signed number
		if err == nil && err2 == nil && flags&unix.RTF_UP != 0 && flags&unix.RTF_REJECT == 0 {
			all = append(all, route{f[0], uint64(uint32(metric))})
		}
	}
	return all
}

// parseRoutes6 returns the default routes in /proc/net/ipv6_route (net/ipv6/route.c).
func parseRoutes6(table string) (all []route) {
	for row := range strings.Lines(table) {
		f := strings.Fields(row)
		if len(f) < 10 || strings.Trim(f[0], "0") != "" || f[1] != "00" || f[9] == "lo" {
			continue
		}
		metric, err := strconv.ParseUint(f[5], 16, 32)
		if err == nil {
			all = append(all, route{f[9], metric})
		}
	}
	return all
}

// findBestRoute returns the interface of the route with the lowest metric.
func findBestRoute(all []route) string {
	var b route
	for i, r := range all {
		if i == 0 || r.metric < b.metric {
			b = r
		}
	}
	return b.iface
}

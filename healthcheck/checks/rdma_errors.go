// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
)

// portErrorBurst is the number of errors of a port between two runs above which the check
// warns.
const portErrorBurst = 100

// portErrors are the counters in /sys/class/infiniband/DEVICE/ports/PORT/counters that do not
// grow with a good cable.
var portErrors = []string{"symbol_error", "port_rcv_errors", "link_error_recovery", "local_link_integrity_errors"}

// rdmaErrors compares error counters with those of the last run. `except` excludes devices
// whose firmware responds to the reading with a flood of kernel messages.
func rdmaErrors(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	before, now := map[string]int64{}, map[string]int64{}
	if json.Unmarshal(h.State, &before) != nil {
		before = map[string]int64{}
	}
	ports, _ := findPorts(h, s)
	var p problems
	for _, port := range ports {
		for _, counter := range portErrors {
			n, ok := readSysNumber(port.dir, "counters/"+counter)
			if !ok {
				continue // VFs and some drivers have no such counter
			}
			key := port.name + "/" + counter
			now[key] = n
			if was, known := before[key]; known && n-was > portErrorBurst {
				p.addWarning("RDMA port %s has many errors (%s)", port.name, counter)
			}
			p.metrics = append(p.metrics, check.Metric{Name: "rdma_port_errors_total",
				Help: "Errors of an RDMA port, by counter.", Counter: true,
				Labels: map[string]string{"port": port.name, "counter": counter}, Value: float64(n)})
		}
	}
	if len(now) == 0 {
		return check.NewFinding(check.NotApplicable, "no RDMA port counts errors")
	}
	f := p.buildFinding("RDMA ports have no burst of errors")
	f.State, _ = json.Marshal(now)
	return f
}

// rdmaGIDs warns of RoCE ports that are up and have no GID of version 2. Such a port cannot be
// used; its network interface has no address or is down.
func rdmaGIDs(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	ports, _ := findPorts(h, s)
	var p problems
	seen := false
	for _, port := range ports {
		layer, _ := readSysText(port.dir, "link_layer")
		state, _ := readSysText(port.dir, "state")
		if layer != "Ethernet" || !strings.HasSuffix(state, ": ACTIVE") {
			continue
		}
		seen = true
		if !hasRoCEv2(port.dir) {
			p.addWarning("RDMA port %s has no GID of RoCE version 2", port.name)
		}
	}
	if !seen {
		return check.NewFinding(check.NotApplicable, "the node has no RoCE ports that are up")
	}
	return p.buildFinding("RoCE ports have GIDs")
}

// hasRoCEv2 reports whether a port has a GID of RoCE version 2.
func hasRoCEv2(port string) bool {
	for _, path := range findMatches(port, "gid_attrs/types/*") {
		kind, _ := readSysText(path, "") // reading the type of an empty entry fails
		gid, _ := readSysText(port, "gids/"+filepath.Base(path))
		if kind == "RoCE v2" && strings.Trim(gid, "0:") != "" {
			return true
		}
	}
	return false
}

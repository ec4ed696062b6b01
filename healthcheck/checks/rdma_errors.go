// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
)

// More errors of a port than this between two runs are worth a word.
const portErrorBurst = 100

// portErrors are counters of /sys/class/infiniband/DEVICE/ports/PORT/counters that a good cable keeps still.
var portErrors = []string{"symbol_error", "port_rcv_errors", "link_error_recovery", "local_link_integrity_errors"}

// rdmaErrors compares counters of errors with the last run's. `except` spares
// devices whose firmware answers the reading with a flood of kernel messages.
func rdmaErrors(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	before, now := map[string]int64{}, map[string]int64{}
	if json.Unmarshal(h.Kept, &before) != nil {
		before = map[string]int64{}
	}
	ports, _ := findPorts(h, s)
	var p problems
	for _, port := range ports {
		for _, counter := range portErrors {
			n, ok := sysNumber(port.dir, "counters/"+counter)
			if !ok {
				continue // VFs and some drivers have none
			}
			key := port.name + "/" + counter
			now[key] = n
			if was, known := before[key]; known && n-was > portErrorBurst {
				p.warned("RDMA port %s has many errors (%s)", port.name, counter)
			}
			p.metrics = append(p.metrics, check.Metric{Name: "rdma_port_errors_total", Help: "Errors of an RDMA port, by counter.", Counter: true,
				Labels: map[string]string{"port": port.name, "counter": counter}, Value: float64(n)})
		}
	}
	if len(now) == 0 {
		return check.Found(check.NotApplicable, "no RDMA port counts errors")
	}
	f := p.finding("RDMA ports have no burst of errors")
	f.Keep, _ = json.Marshal(now)
	return f
}

// rdmaGIDs: a RoCE port that is up and has no GID of version 2 cannot be used; its
// network interface has no address, or is down.
func rdmaGIDs(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	ports, _ := findPorts(h, s)
	var p problems
	seen := false
	for _, port := range ports {
		layer, _ := sysText(port.dir, "link_layer")
		state, _ := sysText(port.dir, "state")
		if layer != "Ethernet" || !strings.HasSuffix(state, ": ACTIVE") {
			continue
		}
		seen = true
		if !hasRoCEv2(port.dir) {
			p.warned("RDMA port %s has no GID of RoCE version 2", port.name)
		}
	}
	if !seen {
		return check.Found(check.NotApplicable, "the node has no RoCE ports that are up")
	}
	return p.finding("RoCE ports have GIDs")
}

func hasRoCEv2(port string) bool {
	for _, path := range matches(port, "gid_attrs/types/*") {
		kind, _ := sysText(path, "") // reading the type of an empty entry is an error
		gid, _ := sysText(port, "gids/"+filepath.Base(path))
		if kind == "RoCE v2" && strings.Trim(gid, "0:") != "" {
			return true
		}
	}
	return false
}

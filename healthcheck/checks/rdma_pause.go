// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/healthcheck/check"
)

// Limits for a paused port: one that may not send for a tenth of the time between two runs is
// held up by a slow or stuck receiver.
const (
	pausedTooMuch = 0.1
	pauseInterval = 10 * time.Second // shorter intervals are not significant
)

// pausable are the kinds of traffic for which mlx5 counts pauses in microseconds, in
// rx_prio3_pause_duration (PFC) and rx_global_pause_duration; see
// Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst.
var pausable = []string{"global", "prio0", "prio1", "prio2", "prio3", "prio4", "prio5", "prio6", "prio7"}

// pauseState is the state of the check: microseconds by port and kind of traffic, and the time
// of reading.
type pauseState struct {
	At           int64             `json:"at"` // Unix milliseconds
	Microseconds map[string]uint64 `json:"us"`
}

// rdmaPause compares the time for which RoCE ports were paused with the last run. Only the
// ethtool counters record it, and VFs have none of them; `except` excludes devices.
func rdmaPause(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	var before pauseState
	if json.Unmarshal(h.State, &before) != nil {
		before = pauseState{}
	}
	now := pauseState{h.Now().UnixMilli(), map[string]uint64{}}
	elapsed := time.Duration(now.At-before.At) * time.Millisecond
	var p problems
	for _, port := range findRoCEPorts(h, s) {
		counters, err := readEthtoolCounters(port.netdev)
		if err != nil && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EOPNOTSUPP) {
			p.addUnknown("cannot read the counters of RDMA port %s: %v", port.name, err)
		}
		for _, traffic := range pausable {
			us, ok := counters["rx_"+traffic+"_pause_duration"]
			if !ok {
				continue
			}
			key := port.name + "/" + traffic
			now.Microseconds[key] = us
			was, known := before.Microseconds[key]
			if known && elapsed >= pauseInterval && us > was &&
				float64(us-was) > pausedTooMuch*float64(elapsed.Microseconds()) {
				p.addWarning("RDMA port %s is paused by the network for much of the time (%s)", port.name, traffic)
			}
			p.metrics = append(p.metrics, check.Metric{Name: "rdma_paused_seconds_total",
				Help: "Time for which an RDMA port was paused.", Counter: true,
				Labels: map[string]string{"port": port.name, "traffic": traffic}, Value: float64(us) / 1e6})
		}
	}
	if len(now.Microseconds)+len(p.unknown) == 0 {
		return check.NewFinding(check.NotApplicable, "no RoCE port counts its pauses")
	}
	f := p.buildFinding("no RoCE port is paused for much of the time")
	if len(before.Microseconds) == 0 || elapsed < 0 || elapsed >= pauseInterval {
		f.State, _ = json.Marshal(now)
	}
	return f
}

// rocePort is a port whose traffic passes through a network interface.
type rocePort struct {
	rdmaPort
	netdev string
}

// findRoCEPorts returns the RoCE ports with their network interfaces.
func findRoCEPorts(h *check.Host, s *check.Settings) (all []rocePort) {
	ports, _ := findPorts(h, s)
	for _, port := range ports {
		netdev, _ := readSysText(port.dir, "gid_attrs/ndevs/0")
		if layer, _ := readSysText(port.dir, "link_layer"); layer == "Ethernet" && netdev != "" {
			all = append(all, rocePort{port, netdev})
		}
	}
	return all
}

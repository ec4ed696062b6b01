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

// A port that others let send nothing for a tenth of the time, from one run to the
// next, is held up: by a slow receiver, or by one that is stuck.
const (
	pausedTooMuch = 0.1
	pauseInterval = 10 * time.Second // shorter ones tell little
)

// mlx5 counts microseconds in rx_prio3_pause_duration (PFC) and rx_global_pause_duration,
// see Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst.
var pausable = []string{"global", "prio0", "prio1", "prio2", "prio3", "prio4", "prio5", "prio6", "prio7"}

// pauses is what is kept: microseconds by port and traffic, and when that was.
type pauses struct {
	At           int64             `json:"at"` // Unix milliseconds
	Microseconds map[string]uint64 `json:"us"`
}

// rdmaPause compares how long RoCE ports were paused with the last run. Only
// ethtool's counters tell, and VFs have none of them; `except` spares devices.
func rdmaPause(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	var before pauses
	if json.Unmarshal(h.Kept, &before) != nil {
		before = pauses{}
	}
	now := pauses{h.Now().UnixMilli(), map[string]uint64{}}
	elapsed := time.Duration(now.At-before.At) * time.Millisecond
	var p problems
	for _, port := range roce(h, s) {
		counters, err := ethtoolCounters(port.netdev)
		if err != nil && !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EOPNOTSUPP) {
			p.unclear("the counters of RDMA port %s cannot be read: %v", port.name, err)
		}
		for _, traffic := range pausable {
			us, has := counters["rx_"+traffic+"_pause_duration"]
			if !has {
				continue
			}
			key := port.name + "/" + traffic
			now.Microseconds[key] = us
			was, known := before.Microseconds[key]
			if known && elapsed >= pauseInterval && us > was && float64(us-was) > pausedTooMuch*float64(elapsed.Microseconds()) {
				p.warned("RDMA port %s is paused by the network much of the time (%s)", port.name, traffic)
			}
			p.metrics = append(p.metrics, check.Metric{Name: "rdma_paused_seconds_total", Help: "How long an RDMA port was told to send nothing.", Counter: true,
				Labels: map[string]string{"port": port.name, "traffic": traffic}, Value: float64(us) / 1e6})
		}
	}
	if len(now.Microseconds)+len(p.unknown) == 0 {
		return check.Found(check.NotApplicable, "no RoCE port counts how long it was paused")
	}
	f := p.finding("no RoCE port is paused much of the time")
	if len(before.Microseconds) == 0 || elapsed < 0 || elapsed >= pauseInterval {
		f.Keep, _ = json.Marshal(now)
	}
	return f
}

// rocePort is a port whose traffic goes through a network interface.
type rocePort struct {
	rdmaPort
	netdev string
}

func roce(h *check.Host, s *check.Settings) (all []rocePort) {
	ports, _ := findPorts(h, s)
	for _, port := range ports {
		netdev, _ := sysText(port.dir, "gid_attrs/ndevs/0")
		if layer, _ := sysText(port.dir, "link_layer"); layer == "Ethernet" && netdev != "" {
			all = append(all, rocePort{port, netdev})
		}
	}
	return all
}

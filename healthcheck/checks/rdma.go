// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
)

// rdmaPort is a port as /sys/class/infiniband shows it.
type rdmaPort struct {
	name, dir string // "mlx5_0/1"
	named     bool   // by the configuration
}

// rdmaPorts looks at state and rate of ports. One that the configuration names
// must be up; another is only worth a word.
func rdmaPorts(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	ports, missing := findPorts(h, s)
	if len(ports)+len(missing) == 0 {
		return check.Found(check.NotApplicable, "the node has no RDMA ports of its own, and none are configured")
	}
	var p problems
	for _, name := range missing {
		p.failed("RDMA port %s is not there", name)
	}
	for _, port := range ports {
		judgePort(&p, port, s.Network.Rate)
	}
	return p.finding("all RDMA ports are up")
}

func judgePort(p *problems, port rdmaPort, rate int) {
	state, ok := sysText(port.dir, "state")
	physical, ok2 := sysText(port.dir, "phys_state")
	_, state, ok3 := strings.Cut(state, ": ") // "4: ACTIVE"
	_, physical, ok4 := strings.Cut(physical, ": ")
	say := p.warned
	if port.named {
		say = p.failed
	}
	p.note("%s: %s, %s", port.name, state, physical)
	switch {
	case !ok || !ok2 || !ok3 || !ok4:
		p.unclear("the state of RDMA port %s is not understood", port.name)
		return
	case state != "ACTIVE" || physical != "LinkUp":
		if port.named || physical != "Disabled" {
			say("RDMA port %s is not up", port.name)
		}
		return
	}
	text, _ := sysText(port.dir, "rate") // "400 Gb/sec (4X NDR)"
	number, _, _ := strings.Cut(text, " ")
	has, err := strconv.ParseFloat(number, 64)
	switch {
	case rate == 0:
	case err != nil:
		p.unclear("the rate of RDMA port %s is not understood", port.name)
	case has < float64(rate):
		say("RDMA port %s is slower than %d Gbit/s", port.name, rate)
	}
}

// findPorts are the configured ports, or all of the node's own: not those of VFs,
// which come and go with jobs.
func findPorts(h *check.Host, s *check.Settings) (ports []rdmaPort, missing []string) {
	root := filepath.Join(h.Roots.Sys, "class/infiniband")
	for _, dir := range matches(root, "*/ports/*") {
		port := filepath.Base(dir)
		device := filepath.Base(filepath.Dir(filepath.Dir(dir)))
		name := device + "/" + port
		named := slices.Contains(s.Network.Ports, device) || slices.Contains(s.Network.Ports, name)
		if slices.Contains(s.Network.Except, device) || slices.Contains(s.Network.Except, name) {
			continue
		}
		isVF := present(filepath.Join(root, device, "device/physfn"))
		if named || len(s.Network.Ports) == 0 && !isVF {
			ports = append(ports, rdmaPort{name, dir, named})
		}
	}
	for _, want := range s.Network.Ports {
		if !slices.ContainsFunc(ports, func(p rdmaPort) bool { return p.name == want || strings.HasPrefix(p.name, want+"/") }) {
			missing = append(missing, want)
		}
	}
	return ports, missing
}

// A link that went down this often within the time below is bad.
const (
	flaps    = 3
	flapTime = time.Hour
)

// flapping is what is kept of a port: its counter, and when that was seen to grow.
type flapping struct {
	Downed int64   `json:"downed"`
	At     []int64 `json:"at,omitempty"` // Unix seconds, at most flaps
}

// rdmaFlaps watches link_downed. Some firmware answers the reading of counters
// with a flood of kernel messages: `except` spares those devices.
func rdmaFlaps(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	before := map[string]flapping{}
	if json.Unmarshal(h.Kept, &before) != nil {
		before = map[string]flapping{}
	}
	ports, _ := findPorts(h, s)
	now := map[string]flapping{}
	var p problems
	var metrics []check.Metric
	for _, port := range ports {
		downed, ok := sysNumber(port.dir, "counters/link_downed")
		if !ok {
			continue // VFs and some drivers have none
		}
		was, known := before[port.name]
		f := flapping{Downed: downed, At: slices.DeleteFunc(was.At, func(at int64) bool {
			return h.Now().Sub(time.Unix(at, 0)) > flapTime
		})}
		for n := was.Downed; known && n < downed && n < was.Downed+flaps; n++ {
			f.At = append(f.At, h.Now().Unix())
		}
		f.At = f.At[max(0, len(f.At)-flaps):]
		now[port.name] = f
		if len(f.At) >= flaps {
			p.failed("the link of RDMA port %s goes up and down", port.name)
		} else if len(f.At) > 0 {
			p.warned("the link of RDMA port %s was down", port.name)
		}
		metrics = append(metrics, check.Metric{Name: "rdma_link_downed_total", Help: "How often the link of an RDMA port went down.", Counter: true,
			Labels: map[string]string{"port": port.name}, Value: float64(downed)})
	}
	if len(now) == 0 {
		return check.Found(check.NotApplicable, "no RDMA port counts how often its link went down")
	}
	f := p.finding("the links of RDMA ports are steady")
	f.Keep, _ = json.Marshal(now)
	f.Metrics = metrics
	return f
}

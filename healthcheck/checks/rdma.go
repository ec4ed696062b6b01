// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/nhc"
)

// rdmaPort is a port in /sys/class/infiniband.
type rdmaPort struct {
	name, dir string // "mlx5_0/1"
	named     bool   // listed in the configuration
	vf        bool   // of a VF, which comes and goes with jobs
}

func (p *rdmaPort) device() string { return filepath.Dir(p.name) }

// rdmaPorts checks the state and rate of ports. A port listed in the configuration must be up;
// another port that is down is a warning.
func rdmaPorts(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	ports, missing := findPorts(h, s)
	if len(ports)+len(missing) == 0 {
		return check.NewFinding(check.NotApplicable, "the node has no RDMA ports of its own and none are configured")
	}
	var p problems
	jobs := jobDevices{h, s}
	for _, name := range missing {
		judgeMissingPort(&p, h, jobs, name)
	}
	for _, port := range ports {
		if port.named && port.vf && !port.isUp() && jobs.LeaveDown(port.device()) {
			p.addNote("%s: a job has it, or it waits for one", port.name)
			continue
		}
		judgePort(&p, port, s.Network.Rate)
	}
	return p.buildFinding("all RDMA ports are up")
}

// judgeMissingPort judges a port of the configuration that the node does not show. A job may have
// its device; a device without the port is faulty, whoever has it.
func judgeMissingPort(p *problems, h *check.Host, jobs jobDevices, name string) {
	device, _, _ := strings.Cut(name, "/")
	exists := func() bool { return mayExist(filepath.Join(h.Roots.Sys, "class/infiniband", device)) }
	if !exists() {
		has, err := jobs.HaveRDMA(device, exists)
		var remark nhc.Remark
		switch {
		case errors.As(err, &remark):
			p.addWarning("RDMA port %s does not exist: %s", name, remark)
			return
		case err != nil:
			p.addUnknown("cannot determine whether a job has RDMA port %s: %v", name, err)
			return
		case has:
			p.addNote("%s: a job has it", name)
			return
		}
	}
	p.addFailure("RDMA port %s does not exist", name)
}

// isUp reports whether the port is certainly up.
func (p *rdmaPort) isUp() bool {
	state, _ := readSysText(p.dir, "state")
	physical, _ := readSysText(p.dir, "phys_state")
	return strings.HasSuffix(state, ": ACTIVE") && strings.HasSuffix(physical, ": LinkUp")
}

// judgePort checks one port.
func judgePort(p *problems, port rdmaPort, rate int) {
	state, ok := readSysText(port.dir, "state")
	physical, ok2 := readSysText(port.dir, "phys_state")
	_, state, ok3 := strings.Cut(state, ": ") // "4: ACTIVE"
	_, physical, ok4 := strings.Cut(physical, ": ")
	say := p.addWarning
	if port.named {
		say = p.addFailure
	}
	p.addNote("%s: %s, %s", port.name, state, physical)
	switch {
	case !ok || !ok2 || !ok3 || !ok4:
		p.addUnknown("cannot parse the state of RDMA port %s", port.name)
		return
	case state != "ACTIVE" || physical != "LinkUp":
		if port.named || physical != "Disabled" {
			say("RDMA port %s is not up", port.name)
		}
		return
	}
	text, _ := readSysText(port.dir, "rate") // "400 Gb/sec (4X NDR)"
	number, _, _ := strings.Cut(text, " ")
	has, err := strconv.ParseFloat(number, 64)
	switch {
	case rate == 0:
	case err != nil:
		p.addUnknown("cannot parse the rate of RDMA port %s", port.name)
	case has < float64(rate):
		say("RDMA port %s is slower than %d Gbit/s", port.name, rate)
	}
}

// findPorts returns the configured ports, or all ports of the node except those of VFs, which
// come and go with jobs.
func findPorts(h *check.Host, s *check.Settings) (ports []rdmaPort, missing []string) {
	root := filepath.Join(h.Roots.Sys, "class/infiniband")
	for _, dir := range findMatches(root, "*/ports/*") {
		port := filepath.Base(dir)
		device := filepath.Base(filepath.Dir(filepath.Dir(dir)))
		name := device + "/" + port
		named := slices.Contains(s.Network.Ports, device) || slices.Contains(s.Network.Ports, name)
		if slices.Contains(s.Network.Except, device) || slices.Contains(s.Network.Except, name) {
			continue
		}
		isVF := mayExist(filepath.Join(root, device, "device/physfn"))
		if named || len(s.Network.Ports) == 0 && !isVF {
			ports = append(ports, rdmaPort{name, dir, named, isVF})
		}
	}
	for _, want := range s.Network.Ports {
		if !slices.ContainsFunc(ports, func(p rdmaPort) bool {
			return p.name == want ||
				strings.HasPrefix(p.name, want+"/")
		}) {
			missing = append(missing, want)
		}
	}
	return ports, missing
}

// Number of link losses within a time after which a link is bad.
const (
	flaps    = 3
	flapTime = time.Hour
)

// flapState is the state of a port: its counter, and the times at which the counter grew.
type flapState struct {
	Downed int64   `json:"downed"`
	At     []int64 `json:"at,omitempty"` // Unix seconds, at most flaps
}

// rdmaFlaps checks the counter link_downed. Some firmware responds to the reading of counters
// with a flood of kernel messages: `except` excludes those devices.
func rdmaFlaps(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	before := map[string]flapState{}
	if json.Unmarshal(h.State, &before) != nil {
		before = map[string]flapState{}
	}
	ports, _ := findPorts(h, s)
	now := map[string]flapState{}
	var p problems
	var metrics []check.Metric
	for _, port := range ports {
		downed, ok := readSysNumber(port.dir, "counters/link_downed")
		if !ok || port.vf {
			continue // some drivers have no such counter; the link of a VF goes down with each job
		}
		was, known := before[port.name]
		f := flapState{Downed: downed, At: slices.DeleteFunc(was.At, func(at int64) bool {
			return h.Now().Sub(time.Unix(at, 0)) > flapTime
		})}
		for n := was.Downed; known && n < downed && n < was.Downed+flaps; n++ {
			f.At = append(f.At, h.Now().Unix())
		}
		f.At = f.At[max(0, len(f.At)-flaps):]
		now[port.name] = f
		if len(f.At) >= flaps {
			p.addFailure("the link of RDMA port %s goes up and down", port.name)
		} else if len(f.At) > 0 {
			p.addWarning("the link of RDMA port %s went down", port.name)
		}
		metrics = append(metrics, check.Metric{Name: "rdma_link_downed_total",
			Help: "Number of times the link of an RDMA port went down.", Counter: true,
			Labels: map[string]string{"port": port.name}, Value: float64(downed)})
	}
	if len(now) == 0 {
		return check.NewFinding(check.NotApplicable, "no RDMA port counts link losses")
	}
	f := p.buildFinding("the links of RDMA ports are stable")
	f.State, _ = json.Marshal(now)
	f.Metrics = metrics
	return f
}

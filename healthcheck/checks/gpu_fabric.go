// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gojail/gojail/healthcheck/check"
)

// queryFabric queries the GPU's membership of an NVLink fabric. Drivers before 550 may lack the call that also returns
// the fabric's health.
func (q *gpuQuery) queryFabric() {
	g := q.gpu
	g.fabricState, g.fabricHealth = absent, absent
	fabric, code := callGetter(q.library, "nvmlDeviceGetGpuFabricInfoV", q.device.GetGpuFabricInfoV().V2)
	if code == nvmlNoFunction || code == nvmlOldVersion {
		var old nvml.GpuFabricInfo
		old, code = callGetter(q.library, "nvmlDeviceGetGpuFabricInfo", q.device.GetGpuFabricInfo)
		fabric = nvml.GpuFabricInfo_v2{ClusterUuid: old.ClusterUuid, CliqueId: old.CliqueId, Status: old.Status,
			State: old.State}
	}
	if !q.hasAnswer("fabric", code) {
		return
	}
	g.fabricState, g.fabricStatus = int64(fabric.State), nvmlCode(fabric.Status)
	g.fabricHealth = int64(fabric.HealthMask)
	if id := fabric.ClusterUuid; slices.Max(id[:]) > 0 { // zeros: the fabric ends at the node
		g.fabricDomain = fmt.Sprintf("%x-%x-%x-%x-%x.%d", id[:4], id[4:6], id[6:8], id[8:10], id[10:], fabric.CliqueId)
	}
}

// fabricPatience is the time after boot that a fabric manager may take to join GPUs to the fabric. That it may be
// restarted, and a GPU be reset, later is the reason for the number of bad runs in the table of checks.
const fabricPatience = 5 * time.Minute

// gpuFabric checks whether the GPUs have joined the NVLink fabric, and what the driver says of the fabric's health.
func gpuFabric(h *check.Host, _ *check.Settings, f *gpuFacts, p *problems) {
	up, known := readUptime(h)
	var domains []string
	judgeEachGPU(f, p, "fabric", func(g *gpuState) {
		switch {
		case g.fabricState == absent, g.fabricState == nvml.GPU_FABRIC_STATE_NOT_SUPPORTED:
		case g.fabricState == nvml.GPU_FABRIC_STATE_COMPLETED && g.fabricStatus == nvmlOK:
			judgeFabricHealth(g, p)
			if !slices.Contains(domains, g.fabricDomain) {
				domains = append(domains, g.fabricDomain)
			}
			p.addFabricMetric(g)
		case !known || up < fabricPatience:
			p.addUnknown("%s has not yet joined the NVLink fabric", g)
		case g.fabricState == nvml.GPU_FABRIC_STATE_COMPLETED:
			p.addFailure("%s failed to join the NVLink fabric: %s", g, g.fabricStatus)
		default:
			p.addFailure("%s has not joined the NVLink fabric", g)
		}
	})
	if len(domains) > 1 {
		p.addWarning("the node's GPUs are in different NVLink domains or partitions")
		p.addNote("NVLink domains: %s", strings.Join(domains, " "))
	}
}

// Fields of NVML_GPU_FABRIC_HEALTH_MASK that go-nvml does not have yet.
const (
	fabricConfigShift, fabricConfigMask = 8, 0xf // NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_INCORRECT_CONFIGURATION
	fabricConfigGood                    = 1      // smaller: the driver does not say
)

// fabricConfigFaults are the values of NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_.
var fabricConfigFaults = map[int64]string{2: "wrong system GUID", 3: "wrong serial number of the chassis",
	4: "no partition", 5: "too few NVLinks", 6: "incompatible firmware of the GPU", 7: "invalid location"}

// judgeFabricHealth judges what the driver says of the fabric. A route that does not work is a fault of the node. What
// the driver repairs at the moment, less bandwidth, and a configuration that the fabric's administrator makes for many
// nodes at once are warnings: programs on one node may work all the same.
func judgeFabricHealth(g *gpuState, p *problems) {
	is := func(shift int) bool { // each has two bits: 0 the driver does not say, 1 true, 2 false
		return g.fabricHealth != absent && g.fabricHealth>>shift&nvml.GPU_FABRIC_HEALTH_MASK_WIDTH_ROUTE_UNHEALTHY ==
			nvml.GPU_FABRIC_HEALTH_MASK_ROUTE_UNHEALTHY_TRUE
	}
	if is(nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_UNHEALTHY) {
		p.addFailure("%s has an unhealthy route in the NVLink fabric", g)
	}
	if is(nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_DEGRADED_BW) {
		p.addWarning("%s has less bandwidth in the NVLink fabric", g)
	}
	if is(nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ROUTE_RECOVERY) ||
		is(nvml.GPU_FABRIC_HEALTH_MASK_SHIFT_ACCESS_TIMEOUT_RECOVERY) {
		p.addWarning("the NVLink fabric recovers from a fault at %s", g)
	}
	if config := g.fabricHealth >> fabricConfigShift & fabricConfigMask; g.fabricHealth != absent &&
		config > fabricConfigGood {
		fault := fabricConfigFaults[config]
		if fault == "" {
			fault = "code " + strconv.FormatInt(config, 10)
		}
		p.addWarning("the NVLink fabric is configured wrongly for %s: %s", g, fault)
	}
}

// addFabricMetric adds the NVLink domain of a GPU: those with the same one reach each other by NVLinks.
func (p *problems) addFabricMetric(g *gpuState) {
	if g.fabricDomain == "" {
		return
	}
	p.addMetric(g, "fabric_info", "1; the cluster UUID and the clique of a GPU's NVLink fabric.", false, 1)
	labels := p.metrics[len(p.metrics)-1].Labels
	labels["cluster"], labels["clique"], _ = strings.Cut(g.fabricDomain, ".")
}

// readUptime returns the time since boot (/proc/uptime).
func readUptime(h *check.Host) (time.Duration, bool) {
	text, err := os.ReadFile(filepath.Join(h.Roots.Proc, "uptime"))
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(first, 64)
	return time.Duration(seconds * float64(time.Second)), err == nil
}

// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/gojail/gojail/healthcheck/check"
)

// TestFabric has what a driver may say of one of eight GPUs, the sixth: only a GPU that could have joined a fabric, and
// has not for long, or has lost its routes, drains the node.
func TestFabric(t *testing.T) {
	const (
		good   = "GPUs have joined"
		mask   = 0x1aa // each field: no
		gpu    = "GPU 6 (0000:16:00.0) "
		old    = "* nvmlDeviceGetGpuFabricInfoV 13"
		other  = "* nvmlDeviceGetGpuFabricInfoV 25"
		booted = "100.0 9.0\n"
		up     = "4000.12 9.0\n"
	)
	for _, c := range []struct {
		name, line, uptime string
		mask               int // of the fabric's health
		verdict            check.Verdict
		text               string
	}{
		{"no fabric", "0 0", up, 0, check.OK, good},
		{"no fabric, and any status", "0 999 0", booted, 0, check.OK, good},
		{"a GPU without a fabric", "3", up, 0, check.OK, good},
		{"NVML fails", "999", up, 0, check.Unknown, "GPU 6 (0000:16:00.0): fabric: unknown driver error"},
		{"not started after boot", "0 0 1", booted, 0, check.Unknown, gpu + "has not yet joined the NVLink fabric"},
		{"not started", "0 0 1", up, 0, check.Fail, gpu + "has not joined the NVLink fabric"},
		{"in progress after boot", "0 0 2", booted, mask, check.Unknown, gpu + "has not yet joined the NVLink fabric"},
		{"in progress", "0 0 2", up, mask, check.Fail, gpu + "has not joined the NVLink fabric"},
		{"in progress, uptime unknown", "0 0 2", "?", mask, check.Unknown, gpu + "has not yet joined the NVLink fabric"},
		{"a state to come", "0 0 4", up, mask, check.Fail, gpu + "has not joined the NVLink fabric"},
		{"error after boot", "0 999 3", booted, mask, check.Unknown, gpu + "has not yet joined the NVLink fabric"},
		{"error", "0 999 3", up, mask, check.Fail, gpu + "failed to join the NVLink fabric: unknown driver error"},
		{"joined", "0 0 3", up, mask, check.OK, good},
		{"joined after boot", "0 0 3", booted, mask, check.OK, good},
		{"health not known", "0 0 3", up, 0, check.OK, good},
		{"route unhealthy", "0 0 3", up, mask ^ 3<<4, check.Fail, gpu + "has an unhealthy route in the NVLink fabric"},
		{"less bandwidth", "0 0 3", up, mask ^ 3, check.Warn, gpu + "has less bandwidth in the NVLink fabric"},
		{"route recovery", "0 0 3", up, mask ^ 3<<2, check.Warn, "the NVLink fabric recovers from a fault at " + gpu[:20]},
		{"timeout recovery", "0 0 3", up, mask ^ 3<<6, check.Warn, "the NVLink fabric recovers from a fault at " + gpu[:20]},
		{"no partition", "0 0 3", up, mask&0xff | 4<<8, check.Warn, "the NVLink fabric is configured wrongly for " + gpu[:20] + ": no partition"},
		{"a fault to come", "0 0 3", up, mask&0xff | 9<<8, check.Warn, "the NVLink fabric is configured wrongly for " + gpu[:20] + ": code 9"},
		{"a field to come", "0 0 3", up, mask | 0xf<<12, check.OK, good},
		{"health of a GPU without a fabric", "0 0 0", up, mask ^ 3<<4, check.OK, good},
	} {
		for _, driver := range []string{"", old, other} {
			h, s := gpuHost(t, fmt.Sprintf("6 nvmlDeviceGetGpuFabricInfo %s %#x", c.line, c.mask), driver)
			put(t, h.Roots.Proc+"/uptime", c.uptime)
			f := once(h, newGPURun(good, gpuFabric), s)
			if driver != "" && c.line == "0 0 3" { // without the health of the fabric
				expect(t, f, check.OK, good)
				continue
			}
			assert.Equal(t, c.verdict.String()+": "+c.text, f.Verdict.String()+": "+f.Text, "%s %s", c.name, driver)
		}
	}
}

// TestFabricDomains has GPUs of nodes in a rack: the metric names the domain, and GPUs in different ones are no fault.
func TestFabricDomains(t *testing.T) {
	for _, driver := range []string{"", "* nvmlDeviceGetGpuFabricInfoV 13"} {
		h, s := gpuHost(t, "* nvmlDeviceGetGpuFabricInfo 0 0 3 0x1aa 7 0x123456789a", driver)
		f := once(h, gpuLooks["fabric"], s)
		expect(t, f, check.OK, "good")
		assert.Len(t, f.Metrics, 8)
		assert.Equal(t, map[string]string{"gpu": "0", "cluster": "00000000-0000-0000-0000-00123456789a", "clique": "7"}, f.Metrics[0].Labels)
		h, s = gpuHost(t, "* nvmlDeviceGetGpuFabricInfo 0 0 3 0x1aa 7 0x12", "5 nvmlDeviceGetGpuFabricInfo 0 0 3 0x1aa 8 0x12", driver)
		expect(t, once(h, gpuLooks["fabric"], s), check.Warn, "the node's GPUs are in different NVLink domains or partitions")
	}
	h, s := gpuHost(t)
	assert.Empty(t, once(h, gpuLooks["fabric"], s).Metrics, "the fabric of one node")
}

// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
)

// A lost GPU must not disable the checks that search for it.
func TestGPUCount(t *testing.T) {
	h, s := gpuHost(t, "- nvmlDeviceGetCount_v2 0 7")
	expect(t, once(h, gpuCount, s), check.Fail, "the driver has fewer GPUs than 8: 0000:17:00.0 is missing")
	h, s = gpuHost(t)
	require.NoError(t, os.RemoveAll(h.Roots.Sys+"/bus/pci/devices/0000:12:00.0"))
	s.GPU.Count = 8
	expect(t, once(h, gpuCount, s), check.Fail, "the PCI bus shows fewer GPUs than the configured 8")
	h, s = gpuHost(t, "- nvmlDeviceGetCount_v2 28")
	expect(t, once(h, gpuCount, s), check.Fail, "")
	h, s = gpuHost(t, "- nvmlDeviceGetCount_v2 0 4000000000")
	assert.NotPanics(t, func() { once(h, gpuCount, s) })
	h, s = gpuHost(t)
	require.NoError(t, os.RemoveAll(h.Roots.Sys+"/bus"))
	expect(t, once(h, gpuCount, s), check.Unknown, "")
	s.GPU.Count = 8
	h.Roots.Sys += "/gone"
	expect(t, once(h, gpuCount, s), check.OK, "")
}

// slurm.conf lists GPUs that are lost even from the bus.
func TestGPUsOfSlurm(t *testing.T) {
	h, s := gpuHost(t)
	conf := h.Roots.Etc + "/slurm/slurm.conf"
	put(t, conf, "NodeName=n[1-4] CPUs=8 \\\n Gres=gpu:h100:8,nic:2 # all\n")
	expect(t, once(h, gpuCount, s), check.OK, "all 8 GPUs are present")
	put(t, conf, "nodename=n[1-4] gres=gpu:9\n")
	expect(t, once(h, gpuCount, s), check.Fail, "the PCI bus shows fewer GPUs than the configured 9; the driver has fewer GPUs than 9")
	h, s = testHost(t), config.DefaultSettings()
	require.NoError(t, os.MkdirAll(h.Roots.Sys+"/bus/pci/devices", 0o755))
	put(t, h.Roots.Run+"/slurm/conf/slurm.conf", "NodeName=DEFAULT Gres=gpu:8\nNodeName=n[1-4]\nNodeName=n9 Gres=gpu:4\n")
	expect(t, once(h, gpuCount, s), check.Fail, "the PCI bus shows no GPU, but slurm.conf has 8")
	for gres, n := range map[string]int{"": 0, "gpu:a100:2(S:0,1),gpu:h100:3": 5, "nic:8": 0, "gpu:4,gpu:1g.10gb:7": 0, "gpux:3": 0, "GPU:2": 2} {
		put(t, h.Roots.Run+"/slurm/conf/slurm.conf", "NodeName=n1 Gres="+gres+"\n")
		assert.Equal(t, n, readGresGPUs(h), gres)
	}
}

// Slurm also counts GPUs of other vendors, and MIG slices.
func TestGresThatAreNoGPUsOfNVIDIA(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	device := h.Roots.Sys + "/bus/pci/devices/0000:05:00.0"
	put(t, h.Roots.Etc+"/slurm/slurm.conf", "NodeName=n1 Gres=gpu:mi300x:8\n")
	for ids, other := range map[string]bool{
		"0x1002 0x120000": true, "0x1002 0x038000": true, "0x8086 0x030200": true, "0x8086 0x030000": true,
		"0x8086 0x020000": false, "0x1a03 0x030000": false, // a network card; the display of a BMC
	} {
		vendor, class, _ := strings.Cut(ids, " ")
		put(t, device+"/vendor", vendor+"\n")
		put(t, device+"/class", class+"\n")
		assert.Equal(t, map[bool]check.Verdict{true: check.NotApplicable, false: check.Fail}[other], once(h, gpuCount, s).Verdict, ids)
	}

	h, s = gpuHost(t, "3 nvmlDeviceGetMigMode 0 1 1")
	put(t, h.Roots.Etc+"/slurm/slurm.conf", "NodeName=n1 Gres=gpu:56\n")
	expect(t, once(h, gpuCount, s), check.OK, "all 8 GPUs are present")
	h, s = gpuHost(t, "- nvmlInit_v2 999") // who knows
	put(t, h.Roots.Etc+"/slurm/slurm.conf", "NodeName=n1 Gres=gpu:56\n")
	expect(t, once(h, gpuCount, s), check.Unknown, "NVML does not work: unknown driver error")
}

func TestMIG(t *testing.T) {
	h, s := gpuHost(t, "* nvmlDeviceGetMigMode 0 1 1", "2 nvmlDeviceGetMigMode 0 0 0")
	expect(t, once(h, gpuMIG, s), check.NotApplicable, "")
	s.GPU.MIG = "on"
	expect(t, once(h, gpuMIG, s), check.Warn, "MIG of GPU 2 (0000:12:00.0) is off")
}

func TestPeermem(t *testing.T) {
	h, s := gpuHost(t)
	expect(t, once(h, gpuPeermem, s), check.NotApplicable, "")
	require.NoError(t, os.MkdirAll(h.Roots.Sys+"/class/infiniband/mlx5_0", 0o755))
	expect(t, once(h, gpuPeermem, s), check.Warn, "nvidia_peermem is not loaded")
	s.GPU.Peermem = "ignore"
	expect(t, once(h, gpuPeermem, s), check.NotApplicable, "")
	s.GPU.Peermem = "drain"
	expect(t, once(h, gpuPeermem, s), check.Fail, "nvidia_peermem is not loaded")
	s.GPU.Peermem = "warn"
	put(t, h.Roots.Proc+"/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\n")
	expect(t, once(h, gpuPeermem, s), check.OK, "the driver exports GPU memory as dma-buf")
	require.NoError(t, os.MkdirAll(h.Roots.Sys+"/module/nvidia_peermem", 0o755))
	expect(t, once(h, gpuPeermem, s), check.OK, "nvidia_peermem is loaded")
	h, s = testHost(t), config.DefaultSettings()
	require.NoError(t, os.MkdirAll(h.Roots.Sys+"/bus/pci/devices", 0o755))
	expect(t, once(h, gpuPeermem, s), check.NotApplicable, "")
}

func TestPendingRowsMayDrain(t *testing.T) {
	h, s := gpuHost(t, "2 nvmlDeviceGetRemappedRows 0 0 1 1 0")
	s.GPU.PendingFail = true
	expect(t, once(h, gpuLooks["rows"], s), check.Fail, "")
}

func TestGPUClocks(t *testing.T) {
	h, s := gpuHost(t, "4 nvmlDeviceGetCurrentClocksEventReasons 0 0x48", "5 nvmlDeviceGetCurrentClocksEventReasons 0 0xc")
	var f check.Finding
	for range slowRuns - 1 {
		f = again(h, gpuClocks, s, f)
		expect(t, f, check.Warn, "GPU 4 (0000:14:00.0) is slowed down by heat or by its power supply")
	}
	f = again(h, gpuClocks, s, f)
	expect(t, f, check.Fail, "")
	well, s2 := gpuHost(t)
	for range slowOf - slowRuns {
		f = again(well, gpuClocks, s2, f)
		expect(t, f, check.Fail, "")
	}
	expect(t, again(well, gpuClocks, s2, f), check.OK, "")
}

func TestGPULeftovers(t *testing.T) {
	h, s := gpuHost(t, "4 nvmlDeviceGetComputeRunningProcesses_v3 0 100 101 102 103")
	stat(t, h, "100", "a", "S", 1000)
	put(t, h.Roots.Proc+"/100/cgroup", "5:devices:/slurm/uid_1000/job_7/step_0/task_0\n")
	stat(t, h, "102", "dcgm", "S", 101)
	put(t, h.Roots.Proc+"/102/cgroup", "0::/system.slice/dcgm.service\n")
	expect(t, once(h, gpuLooks["leftovers"], s), check.OK, "") // 101 and 103 have ended
	stat(t, h, "103", "b", "S", 1000)
	put(t, h.Roots.Proc+"/103/cgroup", "0::/user.slice/user-1000.slice\n")
	expect(t, once(h, gpuLooks["leftovers"], s), check.Fail, "GPU 4 (0000:14:00.0) has a user's process that belongs to no job")
}

func TestShortPCI(t *testing.T) {
	for in, out := range map[string]string{"00000000:1B:00.0": "0000:1b:00.0", "00010000:1B:00.0": "10000:1b:00.0", "": "", "0001:2A:00.0": "0001:2a:00.0"} {
		assert.Equal(t, out, shortenPCI(in))
	}
	assert.True(t, strings.HasPrefix(shortenPCI("00000009:01:00.0"), "0009"))
}

// TestPersistenceIsRemembered: if persistence mode was on in all GPUs, an unresponsive driver
// hangs; otherwise it may be slow.
func TestPersistenceIsRemembered(t *testing.T) {
	for line, keep := range map[string]string{"": "true", "7 nvmlDeviceGetPersistenceMode 0 0": "false", "3 nvmlDeviceGetPersistenceMode 3": "false"} {
		h, s := gpuHost(t, line)
		f := once(h, gpuDriver, s)
		assert.Equal(t, keep, string(f.State), "%q: %s", line, f.Text)
	}
	h, _ := gpuHost(t)
	assert.NotEmpty(t, explainSlowDriver(h), "never answered since boot")
	h.State = encodePersistence(true)
	assert.Empty(t, explainSlowDriver(h))
}

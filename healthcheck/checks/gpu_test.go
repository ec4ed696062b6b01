// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/nvml/fakenvml"
)

const driverText = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Wed Jan 22 00:00:00 UTC 2025\nGCC version:  gcc\n"

// gpuHost has eight GPUs on its bus and a library that says the same but for the lines.
func gpuHost(t *testing.T, lines ...string) (*check.Host, *check.Settings) {
	t.Helper()
	h, s := testHost(t), config.DefaultSettings()
	for i := range 8 {
		dir := fmt.Sprintf("%s/bus/pci/devices/0000:%02x:00.0", h.Roots.Sys, 0x10+i)
		put(t, dir+"/vendor", "0x10de\n")
		put(t, dir+"/class", "0x030200\n")
	}
	put(t, h.Roots.Sys+"/bus/pci/devices/0000:80:00.0/vendor", "0x10de\n") // an NVSwitch
	put(t, h.Roots.Sys+"/bus/pci/devices/0000:80:00.0/class", "0x068000\n")
	put(t, h.Roots.Proc+"/driver/nvidia/version", driverText)
	put(t, h.Roots.Proc+"/uptime", "4000.12 9.0\n")
	s.GPU.Library = fakenvml.New(t, lines...).Path
	return h, s
}

var gpuLooks = map[string]look{
	"driver": gpuDriver, "count": gpuCount, "lost": gpus("good", gpuLost), "recovery": gpus("good", gpuRecovery),
	"ecc": gpuECC, "rows": gpus("good", gpuRows), "pages": gpus("good", gpuPages), "nvlink": gpus("good", gpuLinks),
	"fabric": gpus("good", gpuFabric), "pcie": gpus("good", gpuPCIe), "clocks": gpuClocks, "temperature": gpus("good", gpuTemperature),
	"persistence": gpus("good", gpuPersistence), "nvlink-errors": gpuLinkErrors, "clock-setting": gpus("good", gpuClockSetting),
	"vbios": gpus("good", gpuVBIOS), "mig": onMIG, "leftovers": gpus("good", gpuLeftovers),
}

// onMIG is gpuMIG where GPUs are to have it off.
func onMIG(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	set := *s
	set.GPU.MIG = "off"
	return gpuMIG(ctx, h, &set)
}

func TestHealthyGPUs(t *testing.T) {
	h, s := gpuHost(t)
	for name, l := range gpuLooks {
		f := once(h, l, s)
		assert.Equal(t, check.OK, f.Verdict, "%s: %s", name, f.Text)
	}
}

func TestNoGPUs(t *testing.T) {
	h, s := testHost(t), config.DefaultSettings()
	require.NoError(t, os.MkdirAll(h.Roots.Sys+"/bus/pci/devices", 0o755))
	s.GPU.Library = "/no/such/library" // nor is it asked
	for name, l := range gpuLooks {
		assert.Equal(t, check.NotApplicable, once(h, l, s).Verdict, name)
	}
}

// A broken driver is told once; what it hides is not known, and no healthy GPU is called sick.
func TestBrokenDriver(t *testing.T) {
	for code, words := range map[int]string{9: "the driver is not loaded", 18: "the driver and its library are of different versions", 999: "unknown error of the driver", 77: "NVML error 77"} {
		h, s := gpuHost(t, fmt.Sprintf("- nvmlInit_v2 %d", code))
		s.GPU.Count = 8
		expect(t, once(h, gpuDriver, s), check.Fail, "NVML does not work: "+words)
		for name, l := range gpuLooks {
			if name != "driver" {
				assert.Equal(t, check.Unknown, once(h, l, s).Verdict, name)
			}
		}
	}
	h, s := gpuHost(t)
	s.GPU.Library = t.TempDir() + "/libnvidia-ml.so.1"
	expect(t, once(h, gpuDriver, s), check.Warn, "NVML does not work: the library libnvidia-ml.so.1 cannot be loaded; nor are GPUs configured")
	s.GPU.Count = 8
	expect(t, once(h, gpuDriver, s), check.Fail, "NVML does not work: the library libnvidia-ml.so.1 cannot be loaded")
	for i := range 8 { // all are given to virtual machines
		require.NoError(t, os.Symlink("../../drivers/vfio-pci", fmt.Sprintf("%s/bus/pci/devices/0000:%02x:00.0/driver", h.Roots.Sys, 0x10+i)))
	}
	bus, err := busGPUs(h.Roots.Sys)
	require.NoError(t, err)
	assert.Empty(t, bus)
}

func TestDriverVersion(t *testing.T) {
	h, s := gpuHost(t, "- nvmlSystemGetDriverVersion 0 570.124.06")
	expect(t, once(h, gpuDriver, s), check.Fail, "driver 570.86.15 is loaded, and its library is of 570.124.06")
	for _, garbage := range []string{"garbage\n", "NVRM version: NVIDIA 570. .5 1.2.3.4 5.x\nGCC version: gcc 12.2.0 \n", "GCC version: gcc 12.2.0 \n"} {
		put(t, h.Roots.Proc+"/driver/nvidia/version", garbage)
		expect(t, once(h, gpuDriver, s), check.Unknown, "the version of the driver is not understood")
	}
	put(t, h.Roots.Proc+"/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\n")
	expect(t, once(h, gpuDriver, s), check.OK, "")
}

// A lost GPU must not turn off the checks that look for it.
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

// Slurm knows of GPUs that even the bus has lost.
func TestGPUsOfSlurm(t *testing.T) {
	h, s := gpuHost(t)
	conf := h.Roots.Etc + "/slurm/slurm.conf"
	put(t, conf, "NodeName=n[1-4] CPUs=8 \\\n Gres=gpu:h100:8,nic:2 # all\n")
	expect(t, once(h, gpuCount, s), check.OK, "all 8 GPUs are there")
	put(t, conf, "nodename=n[1-4] gres=gpu:9\n")
	expect(t, once(h, gpuCount, s), check.Fail, "the PCI bus shows fewer GPUs than the configured 9; the driver has fewer GPUs than 9")
	h, s = testHost(t), config.DefaultSettings()
	require.NoError(t, os.MkdirAll(h.Roots.Sys+"/bus/pci/devices", 0o755))
	put(t, h.Roots.Run+"/slurm/conf/slurm.conf", "NodeName=DEFAULT Gres=gpu:8\nNodeName=n[1-4]\nNodeName=n9 Gres=gpu:4\n")
	expect(t, once(h, gpuCount, s), check.Fail, "the PCI bus shows no GPU, and slurm.conf has 8")
	for gres, n := range map[string]int{"": 0, "gpu": 1, "gpu:4": 4, "gpu:a100": 1, "gpu:a100:2(S:0,1),gpu:h100:3": 5, "nic:8": 0, "gpu:1g.10gb:7": 0, "gpux:3": 0, "GPU:2": 2} {
		assert.Equal(t, n, countGPUs(gres), gres)
	}
}

// Slurm counts other makers' GPUs too, and slices.
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
	expect(t, once(h, gpuCount, s), check.OK, "all 8 GPUs are there")
	h, s = gpuHost(t, "- nvmlInit_v2 999") // who knows
	put(t, h.Roots.Etc+"/slurm/slurm.conf", "NodeName=n1 Gres=gpu:56\n")
	expect(t, once(h, gpuCount, s), check.Unknown, "NVML does not work: unknown error of the driver")
}

// Models differ in their NVLinks, and cards for PCIe have them with a bridge only.
func TestNVLinksOfUnequalGPUs(t *testing.T) {
	model := func(i int) string { return fmt.Sprintf("%d nvmlDeviceGetName 0 Tesla T4", i) }
	without := func(i int) string { return fmt.Sprintf("%d nvmlDeviceGetNvLinkState 3", i) }
	unbridged := func(i int) string { return fmt.Sprintf("%d nvmlDeviceGetNvLinkState 0%s", i, strings.Repeat(" 0", 18)) }
	for _, c := range []struct {
		lines   []string
		links   int
		verdict check.Verdict
		text    string
	}{
		{[]string{model(7), without(7)}, 0, check.OK, "good"},
		{[]string{without(7)}, 0, check.OK, "good"},
		{[]string{without(7)}, 18, check.Fail, "GPU 7 (0000:17:00.0) has fewer active NVLinks than 18"},
		{[]string{model(7), unbridged(7)}, 0, check.OK, "good"},
		{[]string{unbridged(4), unbridged(5), unbridged(6), unbridged(7)}, 0, check.Warn, ""},
		{[]string{unbridged(4), unbridged(5), unbridged(6), unbridged(7)}, 18, check.Fail, ""},
		{[]string{unbridged(7)}, 0, check.Fail, "GPU 7 (0000:17:00.0) has fewer active NVLinks than 18"},
		{[]string{unbridged(3), unbridged(4), unbridged(5), unbridged(6), unbridged(7)}, 0, check.OK, "good"},
	} {
		h, s := gpuHost(t, c.lines...)
		s.GPU.Links = c.links
		expect(t, once(h, gpuLooks["nvlink"], s), c.verdict, c.text)
	}
}

func TestBadGPUs(t *testing.T) {
	for _, c := range []struct {
		line, look string
		verdict    check.Verdict
		text       string
	}{
		{"3 nvmlDeviceGetTemperature 15", "lost", check.Fail, "GPU 3 (0000:13:00.0) is lost"},
		{"3 nvmlDeviceGetHandleByIndex_v2 15", "lost", check.Fail, "GPU 3 is lost"},
		{"3 nvmlDeviceGetHandleByIndex_v2 999", "lost", check.Fail, "GPU 3 cannot be used: unknown error of the driver"},
		{"5 nvmlDeviceGetRemappedRows 16", "lost", check.Fail, "GPU 5 (0000:15:00.0) wants a reset"},
		{"5 nvmlDeviceGetPersistenceMode 14", "lost", check.Warn, "GPU 5 (0000:15:00.0) has a corrupted infoROM"},
		{"5 nvmlDeviceGetTemperature 15", "temperature", check.Unknown, "GPU 5 (0000:15:00.0) does not answer"},
		{"0 nvmlDeviceGetFieldValues/230 0 0 2", "recovery", check.Fail, "GPU 0 (0000:10:00.0) wants a reboot of the node"},
		{"0 nvmlDeviceGetFieldValues/230 0 0 9", "recovery", check.Fail, "GPU 0 (0000:10:00.0) wants recovery action 9"},
		{"0 nvmlDeviceGetFieldValues/230 0 3 1", "recovery", check.OK, "good"},
		{"0 nvmlDeviceGetFieldValues/230 2", "recovery", check.OK, "good"},
		{"0 nvmlDeviceGetFieldValues/230 999", "recovery", check.Unknown, "GPU 0 (0000:10:00.0): recovery action: unknown error of the driver"},
		{"1 nvmlDeviceGetMemoryErrorCounter/7 0 0 0 1 1", "ecc", check.Fail, "GPU 1 (0000:11:00.0) has uncorrectable errors in SRAM"},
		{"1 nvmlDeviceGetMemoryErrorCounter/7 0 0 0 0 5", "ecc", check.OK, "no uncorrectable errors"},
		{"1 nvmlDeviceGetMemoryErrorCounter/2 0 9 9 0 0", "ecc", check.OK, "no uncorrectable errors"},
		{"1 nvmlDeviceGetMemoryErrorCounter/2 0 0 0 1 1", "ecc", check.Warn, "GPU 1 (0000:11:00.0) has uncorrectable errors in memory"},
		{"1 nvmlDeviceGetMemoryErrorCounter/7 3", "ecc", check.OK, "no uncorrectable errors"},
		{"1 nvmlDeviceGetSramEccErrorStatus 0 1", "ecc", check.Fail, "GPU 1 (0000:11:00.0) has more errors in SRAM than NVIDIA lets pass"},
		{"1 nvmlDeviceGetSramEccErrorStatus 3", "ecc", check.OK, ""},
		{"1 nvmlDeviceGetMigMode 0 1 1", "mig", check.Warn, "MIG of GPU 1 (0000:11:00.0) is on"},
		{"1 nvmlDeviceGetMigMode 3", "mig", check.OK, ""},
		{"2 nvmlDeviceGetVbiosVersion 0 96.00.99.00.01", "vbios", check.Warn, "the vBIOS of GPU 2 (0000:12:00.0) is another than that of its like"},
		{"2 nvmlDeviceGetName 0 NVIDIA A100", "vbios", check.OK, ""},
		{"2 nvmlDeviceGetVbiosVersion 3", "vbios", check.OK, ""},
		{"3 nvmlDeviceGetApplicationsClock 0 1980 1200 2619", "clock-setting", check.Warn, "the application clock of GPU 3 (0000:13:00.0) is set to 1200 MHz, below the usual 1980"},
		{"3 nvmlDeviceGetApplicationsClock 3", "clock-setting", check.OK, ""},
		{"7 nvmlDeviceGetFieldValues/82 0 0 95", "temperature", check.Warn, "the memory of GPU 7 (0000:17:00.0) is too hot"},
		{"7 nvmlDeviceGetFieldValues/82 0 3 0", "temperature", check.OK, ""},
		{"2 nvmlDeviceGetRemappedRows 0 1 1 0 1", "rows", check.Fail, "GPU 2 (0000:12:00.0): row remapping has failed"},
		{"2 nvmlDeviceGetRemappedRows 0 0 1 1 0", "rows", check.Warn, "GPU 2 (0000:12:00.0): row remapping waits for a reset"},
		{"2 nvmlDeviceGetRemappedRows 3", "rows", check.OK, "good"},
		{"2 nvmlDeviceGetRetiredPages 0 40 22", "pages", check.Warn, "GPU 2 (0000:12:00.0) has retired nearly all pages that it can"},
		{"2 nvmlDeviceGetRetiredPagesPendingStatus 0 1", "pages", check.Warn, ""},
		{"6 nvmlDeviceGetNvLinkState 0 1 1 1 1 0 1 1 1 1 1 1 1 1 1 1 1 1 1", "nvlink", check.Fail, "GPU 6 (0000:16:00.0) has fewer active NVLinks than 18"},
		{"* nvmlDeviceGetNvLinkState 3", "nvlink", check.OK, "good"},
		{"6 nvmlDeviceGetGpuFabricInfo 0 0 2", "fabric", check.Fail, "GPU 6 (0000:16:00.0) has not joined the NVLink fabric"},
		{"6 nvmlDeviceGetGpuFabricInfo 0 999 3", "fabric", check.Fail, ""},
		{"6 nvmlDeviceGetGpuFabricInfo 0 0 0", "fabric", check.OK, "good"},
		{"6 nvmlDeviceGetGpuFabricInfo 3", "fabric", check.OK, "good"},
		{"7 nvmlDeviceGetCurrPcieLinkWidth 0 8", "pcie", check.Warn, "GPU 7 (0000:17:00.0) uses 8 of 16 PCIe lanes"},
		{"7 nvmlDeviceGetTemperature 0 89", "temperature", check.Warn, ""},
		{"7 nvmlDeviceGetTemperatureThreshold 3", "temperature", check.OK, ""},
		{"7 nvmlDeviceGetPersistenceMode 0 0", "persistence", check.Warn, "persistence mode of GPU 7 (0000:17:00.0) is off"},
	} {
		h, s := gpuHost(t, c.line)
		f := once(h, gpuLooks[c.look], s)
		assert.Equal(t, c.verdict.String(), f.Verdict.String(), "%s: %s", c.line, f.Text)
		if c.text != "" {
			assert.Equal(t, c.text, f.Text, c.line)
		}
		if c.verdict == check.OK {
			expect(t, once(h, gpuDriver, s), check.OK, "")
		}
	}
}

func TestPCIeAtWork(t *testing.T) {
	const busy = "7 nvmlDeviceGetUtilizationRates 0 90 10"
	h, s := gpuHost(t, busy)
	expect(t, once(h, gpuLooks["pcie"], s), check.Warn, "GPU 7 (0000:17:00.0) works with PCIe generation 1 of 5")
	h, s = gpuHost(t, busy, "7 nvmlDeviceGetCurrPcieLinkGeneration 0 5")
	expect(t, once(h, gpuLooks["pcie"], s), check.OK, "")
	h, s = gpuHost(t, busy, "7 nvmlDeviceGetCurrPcieLinkWidth 0 8")
	expect(t, once(h, gpuLooks["pcie"], s), check.Fail, "GPU 7 (0000:17:00.0) works with 8 of 16 PCIe lanes")
}

// Counts matter by how much they grow from one run to the next.
func TestGrowingErrors(t *testing.T) {
	for name, line := range map[string]string{"nvlink-errors": "4 nvmlDeviceGetFieldValues/52 0 0 ", "ecc": "4 nvmlDeviceGetMemoryErrorCounter/2 0 "} {
		h, s := gpuHost(t, line+"1000000")
		f := again(h, gpuLooks[name], s, check.Finding{})
		expect(t, f, check.OK, "") // they may be from long ago
		h, s = gpuHost(t, line+"1000050")
		f = again(h, gpuLooks[name], s, f)
		expect(t, f, check.OK, "")
		h, s = gpuHost(t, line+"2000000")
		expect(t, again(h, gpuLooks[name], s, f), check.Warn, "")
		h, s = gpuHost(t, line+"0") // the driver was loaded anew
		expect(t, again(h, gpuLooks[name], s, f), check.OK, "")
	}
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
	expect(t, once(h, gpuPeermem, s), check.OK, "the driver shares GPU memory as dma-buf")
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

func TestYoungFabric(t *testing.T) {
	h, s := gpuHost(t, "* nvmlDeviceGetGpuFabricInfo 0 0 1")
	put(t, h.Roots.Proc+"/uptime", "100.0 9.0\n")
	expect(t, once(h, gpuLooks["fabric"], s), check.Unknown, "")
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

// The library hangs in a process of its own: what hangs in it cannot be given up.
func TestHangingLibrary(t *testing.T) {
	if library := os.Getenv("GOJAIL_TEST_NVML"); library != "" {
		fmt.Println("asks") // however slowly it started
		(&gpuFacts{}).ask(library)
		os.Exit(0)
	}
	for _, line := range []string{"- nvmlInit_v2 hang", "3 nvmlDeviceGetNvLinkState hang", "7 nvmlDeviceGetRemappedRows wait 60000"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestHangingLibrary$")
		cmd.Env = append(os.Environ(), "GOJAIL_TEST_NVML="+fakenvml.New(t, line).Path)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = io.ReadFull(out, make([]byte, len("asks\n")))
		assert.NoError(t, err, line)
		killed := time.AfterFunc(300*time.Millisecond, func() { cmd.Process.Kill() })
		_ = cmd.Wait()
		assert.False(t, killed.Stop(), "%s: it has ended by itself", line)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHangingLibrary$")
	cmd.Env = append(os.Environ(), "GOJAIL_TEST_NVML="+fakenvml.New(t, "* nvmlDeviceGetTemperature wait 1").Path)
	assert.NoError(t, cmd.Run())
}

// alone starts a process for a test that needs one of its own, and is true there: for
// what a process does not get rid of, as fakenvml.Renamed.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv("GOJAIL_TEST_ALONE") != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "GOJAIL_TEST_ALONE=1")
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%s", out)
	return false
}

// What an older driver's library lacks is no fault, nor does it end the process.
func TestOlderLibrary(t *testing.T) {
	if !alone(t) {
		return
	}
	h, s := gpuHost(t)
	var lacks []string
	for _, name := range []string{"Name", "PersistenceMode", "CurrPcieLinkWidth", "CurrPcieLinkGeneration", "PcieReplayCounter", "PowerUsage",
		"VbiosVersion", "MigMode", "UtilizationRates", "SramEccErrorStatus", "Temperature", "TemperatureThreshold", "ApplicationsClock",
		"NvLinkState", "CurrentClocksEventReasons", "MemoryErrorCounter", "RemappedRows", "RetiredPages", "RetiredPagesPendingStatus",
		"GpuFabricInfo", "FieldValues", "ComputeRunningProcesses_v3"} {
		lacks = append(lacks, "nvmlDeviceGet"+name)
	}
	s.GPU.Library = fakenvml.Without(t, append(lacks, "nvmlDeviceValidateInforom")...).Path
	for name, l := range gpuLooks {
		f := once(h, l, s)
		assert.Equal(t, check.OK, f.Verdict, "%s: %s", name, f.Text)
	}
	for _, g := range facts(h, s).gpus {
		assert.Empty(t, g.failed)
	}
	expect(t, once(h, gpuInforom, s), check.NotApplicable, "no GPU can verify its infoROM")
}

func TestNoLibraryOfNVML(t *testing.T) {
	if !alone(t) {
		return
	}
	h, s := gpuHost(t)
	s.GPU.Library = fakenvml.Without(t, "nvmlInit_v2").Path
	expect(t, once(h, gpuDriver, s), check.Fail, "NVML does not work: the library lacks a call")
}

// Before driver 535 a call has another name.
func TestOlderNameOfClocks(t *testing.T) {
	if !alone(t) {
		return
	}
	h, s := gpuHost(t)
	s.GPU.Library = fakenvml.Renamed(t, []string{"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}, "2 nvmlDeviceGetCurrentClocksThrottleReasons 0 0x48").Path
	expect(t, once(h, gpuClocks, s), check.Warn, "GPU 2 (0000:12:00.0) is slowed down by heat or by its power supply")
}

func TestNvidiaSMI(t *testing.T) {
	h, s := gpuHost(t)
	smi := filepath.Join(t.TempDir(), "nvidia-smi")
	s.GPU.SMI = smi
	h.Command = func(ctx context.Context, name string, args ...string) ([]byte, error) {
		return exec.CommandContext(ctx, name, args...).Output()
	}
	expect(t, once(h, nvidiaSMI, s), check.Warn, "there is no "+smi)
	script := func(text string) {
		require.NoError(t, os.WriteFile(smi, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	}
	script(`printf '0, 00000000:10:00.0\n1, 00000000:11:00.0\n'`)
	expect(t, once(h, nvidiaSMI, s), check.OK, "")
	for text, keep := range map[string]string{`printf '0, 00000000:10:00.0, Enabled\n1, 00000000:11:00.0, Enabled\n'`: "true",
		`printf '0, 00000000:10:00.0, Enabled\n1, 00000000:11:00.0, Disabled\n'`: "false"} {
		script(text)
		f := once(h, nvidiaSMI, s)
		expect(t, f, check.OK, "")
		assert.Equal(t, keep, string(f.Keep), text)
	}
	s.GPU.Count = 8
	expect(t, once(h, nvidiaSMI, s), check.Fail, "nvidia-smi shows fewer GPUs than 8")
	script("echo x; exit 15")
	expect(t, once(h, nvidiaSMI, s), check.Fail, "nvidia-smi fails: a GPU is lost")
	script("echo No devices were found")
	expect(t, once(h, nvidiaSMI, s), check.Unknown, "the output of nvidia-smi is not understood")
	h.Command = func(context.Context, string, ...string) ([]byte, error) { return nil, errors.New("exec format error") }
	expect(t, once(h, nvidiaSMI, s), check.Unknown, "nvidia-smi cannot be run")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	expect(t, nvidiaSMI(ctx, h, s), check.Warn, "slow: persistence mode is not known to be on; nvidia-persistenced turns it on")
	h.Kept = keepPersistence(false)
	expect(t, nvidiaSMI(ctx, h, s), check.Warn, "slow: persistence mode is not known to be on; nvidia-persistenced turns it on")
	h.Kept = keepPersistence(true)
	expect(t, nvidiaSMI(ctx, h, s), check.Fail, "nvidia-smi does not answer")
}

func TestShortPCI(t *testing.T) {
	for in, out := range map[string]string{"00000000:1B:00.0": "0000:1b:00.0", "00010000:1B:00.0": "00010000:1b:00.0", "": "", "0001:2A:00.0": "0001:2a:00.0"} {
		assert.Equal(t, out, shortPCI(in))
	}
	assert.True(t, strings.HasPrefix(shortPCI("00000009:01:00.0"), "0009"))
}

// TestPersistenceIsRemembered: with it on in all GPUs a driver that is silent hangs, else it may be slow.
func TestPersistenceIsRemembered(t *testing.T) {
	for line, keep := range map[string]string{"": "true", "7 nvmlDeviceGetPersistenceMode 0 0": "false", "3 nvmlDeviceGetPersistenceMode 3": "false"} {
		h, s := gpuHost(t, line)
		f := once(h, gpuDriver, s)
		assert.Equal(t, keep, string(f.Keep), "%q: %s", line, f.Text)
	}
	h, _ := gpuHost(t)
	assert.NotEmpty(t, withoutPersistence(h), "never answered since boot")
	h.Kept = keepPersistence(true)
	assert.Empty(t, withoutPersistence(h))
}

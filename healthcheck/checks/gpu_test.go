// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/nvml/fakenvml"
)

const driverText = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Wed Jan 22 00:00:00 UTC 2025\nGCC version:  gcc\n"

// gpuHost returns a host with eight GPUs on its bus and a library with the same GPUs, changed
// by the lines.
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

var gpuLooks = map[string]checkFunc{
	"driver": gpuDriver, "count": gpuCount, "lost": newGPURun("good", gpuLost), "recovery": newGPURun("good", gpuRecovery),
	"ecc": gpuECC, "rows": newGPURun("good", gpuRows), "pages": newGPURun("good", gpuPages), "nvlink": newGPURun("good", gpuLinks),
	"fabric": newGPURun("good", gpuFabric), "pcie": newGPURun("good", gpuPCIe), "clocks": gpuClocks, "temperature": newGPURun("good", gpuTemperature),
	"persistence": newGPURun("good", gpuPersistence), "nvlink-errors": gpuLinkErrors, "clock-setting": newGPURun("good", gpuClockSetting),
	"vbios": newGPURun("good", gpuVBIOS), "mig": onMIG, "leftovers": newGPURun("good", gpuLeftovers),
}

// onMIG is gpuMIG with MIG configured as off.
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

// A broken driver is reported once; hidden states are Unknown, and no healthy GPU is reported
// as faulty.
func TestBrokenDriver(t *testing.T) {
	for code, words := range map[int]string{9: "the driver is not loaded", 18: "the driver and its library have different versions", 999: "unknown driver error", 77: "NVML error 77"} {
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
	expect(t, once(h, gpuDriver, s), check.Warn, "NVML does not work: cannot load the library libnvidia-ml.so.1; no GPU is configured")
	s.GPU.Count = 8
	expect(t, once(h, gpuDriver, s), check.Fail, "NVML does not work: cannot load the library libnvidia-ml.so.1")
	for i, link := range []string{"driver vfio-pci", "driver vfio", "driver nvgrace-gpu-vfio-pci", "driver pci-stub", "driver pciback",
		"driver xen-pciback", "physfn 0000:1b:00.0", "driver vfio_pci"} { // all are given to virtual machines, or are VFs
		name, target, _ := strings.Cut(link, " ")
		dir := fmt.Sprintf("%s/bus/pci/devices/0000:%02x:00.0/", h.Roots.Sys, 0x10+i)
		require.NoError(t, os.Symlink("../"+target, dir+name))
	}
	bus, err := readBusGPUs(h.Roots.Sys)
	require.NoError(t, err)
	assert.Empty(t, bus)
}

func TestDriverVersion(t *testing.T) {
	h, s := gpuHost(t, "- nvmlSystemGetDriverVersion 0 570.124.06")
	expect(t, once(h, gpuDriver, s), check.Fail, "driver 570.86.15 is loaded, but its library has version 570.124.06")
	for _, garbage := range []string{"garbage\n", "NVRM version: NVIDIA 570. .5 1.2.3.4 5.x\nGCC version: gcc 12.2.0 \n", "GCC version: gcc 12.2.0 \n"} {
		put(t, h.Roots.Proc+"/driver/nvidia/version", garbage)
		expect(t, once(h, gpuDriver, s), check.Unknown, "cannot parse the version of the driver")
	}
	put(t, h.Roots.Proc+"/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build\n")
	expect(t, once(h, gpuDriver, s), check.OK, "")
}

// Models differ in their number of NVLinks, and PCIe cards have them only with a bridge.
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
		{"3 nvmlDeviceGetHandleByIndex_v2 999", "lost", check.Fail, "GPU 3 cannot be used: unknown driver error"},
		{"5 nvmlDeviceGetRemappedRows 16", "lost", check.Fail, "GPU 5 (0000:15:00.0) requires a reset"},
		{"5 nvmlDeviceGetPersistenceMode 14", "lost", check.Warn, "GPU 5 (0000:15:00.0) has a corrupted infoROM"},
		{"5 nvmlDeviceGetTemperature 15", "temperature", check.Unknown, "GPU 5 (0000:15:00.0) does not answer"},
		{"0 nvmlDeviceGetFieldValues/230 0 0 2", "recovery", check.Fail, "GPU 0 (0000:10:00.0) requires a reboot of the node"},
		{"0 nvmlDeviceGetFieldValues/230 0 0 9", "recovery", check.Fail, "GPU 0 (0000:10:00.0) requires recovery action 9"},
		{"0 nvmlDeviceGetFieldValues/230 0 3 1", "recovery", check.OK, "good"},
		{"0 nvmlDeviceGetFieldValues/230 2", "recovery", check.OK, "good"},
		{"0 nvmlDeviceGetFieldValues/230 999", "recovery", check.Unknown, "GPU 0 (0000:10:00.0): recovery action: unknown driver error"},
		{"1 nvmlDeviceGetMemoryErrorCounter/7 0 0 0 1 1", "ecc", check.Fail, "GPU 1 (0000:11:00.0) has uncorrectable errors in SRAM"},
		{"1 nvmlDeviceGetMemoryErrorCounter/7 0 0 0 0 5", "ecc", check.OK, "no uncorrectable errors"},
		{"1 nvmlDeviceGetMemoryErrorCounter/2 0 9 9 0 0", "ecc", check.OK, "no uncorrectable errors"},
		{"1 nvmlDeviceGetMemoryErrorCounter/2 0 0 0 1 1", "ecc", check.Warn, "GPU 1 (0000:11:00.0) has uncorrectable errors in memory"},
		{"1 nvmlDeviceGetMemoryErrorCounter/7 3", "ecc", check.OK, "no uncorrectable errors"},
		{"1 nvmlDeviceGetSramEccErrorStatus 0 1", "ecc", check.Fail, "GPU 1 (0000:11:00.0) exceeds NVIDIA's threshold of SRAM errors"},
		{"1 nvmlDeviceGetSramEccErrorStatus 3", "ecc", check.OK, ""},
		{"1 nvmlDeviceGetMigMode 0 1 1", "mig", check.Warn, "MIG of GPU 1 (0000:11:00.0) is on"},
		{"1 nvmlDeviceGetMigMode 3", "mig", check.OK, ""},
		{"2 nvmlDeviceGetVbiosVersion 0 96.00.99.00.01", "vbios", check.Warn, "the vBIOS of GPU 2 (0000:12:00.0) differs from that of the other GPUs of its model"},
		{"2 nvmlDeviceGetName 0 NVIDIA A100", "vbios", check.OK, ""},
		{"2 nvmlDeviceGetVbiosVersion 3", "vbios", check.OK, ""},
		{"3 nvmlDeviceGetApplicationsClock 0 1980 1200 2619", "clock-setting", check.Warn, "the application clock of GPU 3 (0000:13:00.0) is set to 1200 MHz, below the default 1980"},
		{"3 nvmlDeviceGetApplicationsClock 3", "clock-setting", check.OK, ""},
		{"7 nvmlDeviceGetFieldValues/82 0 0 95", "temperature", check.Warn, "the memory of GPU 7 (0000:17:00.0) is too hot"},
		{"7 nvmlDeviceGetFieldValues/82 0 3 0", "temperature", check.OK, ""},
		{"2 nvmlDeviceGetRemappedRows 0 1 1 0 1", "rows", check.Fail, "GPU 2 (0000:12:00.0): row remapping has failed"},
		{"2 nvmlDeviceGetRemappedRows 0 0 1 1 0", "rows", check.Warn, "GPU 2 (0000:12:00.0): row remapping waits for a reset"},
		{"2 nvmlDeviceGetRemappedRows 3", "rows", check.OK, "good"},
		{"2 nvmlDeviceGetRetiredPages 0 40 22", "pages", check.Warn, "GPU 2 (0000:12:00.0) has retired almost the maximum number of pages"},
		{"2 nvmlDeviceGetRetiredPagesPendingStatus 0 1", "pages", check.Warn, ""},
		{"6 nvmlDeviceGetNvLinkState 0 1 1 1 1 0 1 1 1 1 1 1 1 1 1 1 1 1 1", "nvlink", check.Fail, "GPU 6 (0000:16:00.0) has fewer active NVLinks than 18"},
		{"* nvmlDeviceGetNvLinkState 3", "nvlink", check.OK, "good"},
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
	expect(t, once(h, gpuLooks["pcie"], s), check.Warn, "GPU 7 (0000:17:00.0) runs with PCIe generation 1 of 5")
	h, s = gpuHost(t, busy, "7 nvmlDeviceGetCurrPcieLinkGeneration 0 5")
	expect(t, once(h, gpuLooks["pcie"], s), check.OK, "")
	h, s = gpuHost(t, busy, "7 nvmlDeviceGetCurrPcieLinkWidth 0 8")
	expect(t, once(h, gpuLooks["pcie"], s), check.Fail, "GPU 7 (0000:17:00.0) runs with 8 of 16 PCIe lanes")
}

// Counters are judged by their growth from one run to the next.
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

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
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/nvml/fakenvml"
)

// The library hangs in a separate process, since a hung call cannot be abandoned.
func TestHangingLibrary(t *testing.T) {
	if library := os.Getenv("GOJAIL_TEST_NVML"); library != "" {
		fmt.Println("asks") // however slowly it started
		(&gpuFacts{}).queryLibrary(library)
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

// A function that an older driver's library lacks is no fault, and does not end the process.
func TestOlderLibrary(t *testing.T) {
	if !alone(t) {
		return
	}
	h, s := gpuHost(t)
	var lacks []string
	for _, name := range []string{"Name", "PersistenceMode", "CurrPcieLinkWidth", "CurrPcieLinkGeneration", "PcieReplayCounter", "PowerUsage",
		"VbiosVersion", "MigMode", "UtilizationRates", "SramEccErrorStatus", "Temperature", "TemperatureThreshold", "ApplicationsClock",
		"NvLinkState", "CurrentClocksEventReasons", "MemoryErrorCounter", "RemappedRows", "RetiredPages", "RetiredPagesPendingStatus",
		"GpuFabricInfo", "GpuFabricInfoV", "FieldValues", "ComputeRunningProcesses_v3"} {
		lacks = append(lacks, "nvmlDeviceGet"+name)
	}
	s.GPU.Library = fakenvml.Without(t, append(lacks, "nvmlDeviceValidateInforom")...).Path
	for name, l := range gpuLooks {
		f := once(h, l, s)
		assert.Equal(t, check.OK, f.Verdict, "%s: %s", name, f.Text)
	}
	for _, g := range readGPUFacts(h, s).gpus {
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
	expect(t, once(h, gpuDriver, s), check.Fail, "NVML does not work: the library lacks a function")
}

// Before driver 535 a function has another name.
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
	expect(t, once(h, nvidiaSMI, s), check.Warn, smi+" does not exist")
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
		assert.Equal(t, keep, string(f.State), text)
	}
	s.GPU.Count = 8
	expect(t, once(h, nvidiaSMI, s), check.Fail, "nvidia-smi shows fewer than 8 GPUs")
	script("echo x; exit 15")
	expect(t, once(h, nvidiaSMI, s), check.Fail, "nvidia-smi fails: a GPU is lost")
	script("echo No devices were found")
	expect(t, once(h, nvidiaSMI, s), check.Unknown, "cannot parse the output of nvidia-smi")
	h.Command = func(context.Context, string, ...string) ([]byte, error) { return nil, errors.New("exec format error") }
	expect(t, once(h, nvidiaSMI, s), check.Unknown, "cannot run nvidia-smi")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	expect(t, nvidiaSMI(ctx, h, s), check.Warn, "slow: persistence mode may be off; nvidia-persistenced turns it on")
	h.State = encodePersistence(false)
	expect(t, nvidiaSMI(ctx, h, s), check.Warn, "slow: persistence mode may be off; nvidia-persistenced turns it on")
	h.State = encodePersistence(true)
	expect(t, nvidiaSMI(ctx, h, s), check.Fail, "nvidia-smi does not answer")
}

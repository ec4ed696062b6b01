// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/nvml/fakenvml"
)

func TestInforomOnceADay(t *testing.T) {
	const bad = "5 nvmlDeviceValidateInforom 14"
	h, s := gpuHost(t)
	f := again(h, gpuInforom, s, check.Finding{})
	expect(t, f, check.OK, "no infoROM is corrupted")
	s.GPU.Library = fakenvml.New(t, bad).Path
	yesterday := h.Now()
	h.Now = func() time.Time { return yesterday.Add(inforomAgain - time.Second) }
	f = again(h, gpuInforom, s, f)
	expect(t, f, check.OK, "") // it was not asked
	h.Now = func() time.Time { return yesterday.Add(inforomAgain) }
	f = again(h, gpuInforom, s, f)
	expect(t, f, check.Warn, "GPU 5 (0000:15:00.0) has a corrupted infoROM")
	s.GPU.Library = "/no/such/library"
	expect(t, again(h, gpuInforom, s, f), check.Warn, "GPU 5 (0000:15:00.0) has a corrupted infoROM")
	h.Now = func() time.Time { return yesterday } // the clock was set back
	f2 := again(h, gpuInforom, s, f)
	expect(t, f2, check.Unknown, "NVML does not work: cannot load the library libnvidia-ml.so.1")
	assert.Nil(t, f2.State) // the next run tries again
}

// Where there are no GPUs, the driver's library is not loaded.
func TestNothingIsAskedWithoutGPUs(t *testing.T) {
	h := testHost(t)
	h.Settings.GPU.Library = "/no/such/library"
	put(t, h.Roots.Sys+"/bus/pci/devices/0000:00:00.0/vendor", "0x8086\n")
	for _, c := range All() {
		if strings.HasPrefix(c.Name, "gpu-") && c.Name != "gpu-count" {
			assert.Equal(t, check.NotApplicable, c.Run(t.Context(), h).Verdict, c.Name)
		}
	}
}

func TestInforomThatIsNotRead(t *testing.T) {
	for _, c := range []struct {
		line    string
		verdict check.Verdict
		text    string
	}{
		{"* nvmlDeviceValidateInforom 3", check.NotApplicable, "no GPU can verify its infoROM"},
		{"2 nvmlDeviceValidateInforom 3", check.OK, "no infoROM is corrupted"},
		{"2 nvmlDeviceValidateInforom 15", check.Unknown, "GPU 2 (0000:12:00.0): infoROM: a GPU is lost"},
		{"2 nvmlDeviceGetHandleByIndex_v2 15", check.Unknown, "GPU 2: infoROM: a GPU is lost"},
		{"- nvmlDeviceGetCount_v2 999", check.Unknown, "NVML does not work: unknown driver error"},
		{"- nvmlDeviceGetCount_v2 0 0", check.Unknown, "NVML shows no GPU"},
	} {
		h, s := gpuHost(t, c.line)
		expect(t, once(h, gpuInforom, s), c.verdict, c.text)
	}
}

// A GPU that was lost is checked when it has returned.
func TestInforomOfALostGPU(t *testing.T) {
	for _, line := range []string{"2 nvmlDeviceValidateInforom 15", "2 nvmlDeviceGetHandleByIndex_v2 15"} {
		h, s := gpuHost(t, line)
		f := again(h, gpuInforom, s, check.Finding{})
		expect(t, f, check.Unknown, "")
		s.GPU.Library = fakenvml.New(t, "2 nvmlDeviceValidateInforom 14", "3 nvmlDeviceValidateInforom 14").Path
		expect(t, again(h, gpuInforom, s, f), check.Warn, "GPU 2 (0000:12:00.0) has a corrupted infoROM")
	}
}

// inTime runs the check with a deadline.
func inTime(t *testing.T, h *check.Host, s *check.Settings, has time.Duration, before check.Finding) check.Finding {
	ctx, cancel := context.WithTimeout(context.Background(), has)
	defer cancel()
	h.State = before.State
	f := gpuInforom(ctx, h, s)
	end, _ := ctx.Deadline()
	assert.Less(t, time.Since(end), time.Minute, "it has passed its time")
	return f
}

// A GPU that hangs delays one run a day, and the others are checked.
func TestInforomThatHangs(t *testing.T) {
	h, s := gpuHost(t, "5 nvmlDeviceValidateInforom hang", "6 nvmlDeviceValidateInforom 14")
	var f check.Finding
	for range 2 { // it may be the first or the last of them
		f = inTime(t, h, s, inforomSpare+2*time.Second, f)
	}
	expect(t, f, check.Unknown, "GPU 5 (0000:15:00.0): infoROM: timeout")
	assert.Contains(t, f.Detail, "GPU 6 (0000:16:00.0) has a corrupted infoROM")
	s.GPU.Library = "/no/such/library"
	expect(t, inTime(t, h, s, time.Hour, f), check.Unknown, "GPU 5 (0000:15:00.0): infoROM: timeout")

	h, s = gpuHost(t, "- nvmlInit_v2 hang")
	f = inTime(t, h, s, inforomSpare+time.Second, check.Finding{})
	expect(t, f, check.Unknown, "NVML does not work: timeout")
	assert.Nil(t, f.State)
}

// Slow GPUs are distributed over several runs.
func TestSlowInforoms(t *testing.T) {
	h, s := gpuHost(t, "* nvmlDeviceValidateInforom wait 600", "7 nvmlDeviceValidateInforom 14")
	var f check.Finding
	runs := 0
	for began := h.Now(); runs < 20; runs++ {
		h.Now = func() time.Time { return began.Add(time.Duration(runs) * time.Minute) }
		before := string(f.State)
		f = inTime(t, h, s, inforomTimeout, f)
		if string(f.State) == before { // none was read
			break
		}
	}
	assert.Greater(t, runs, 2)
	assert.LessOrEqual(t, runs, 8, "each of them reads one at least")
	expect(t, f, check.Warn, "GPU 7 (0000:17:00.0) has a corrupted infoROM")
}

// TestInforomsOfALibraryThatStartsSlowly: without persistence mode, initialization takes longer
// than the time for reading.
func TestInforomsOfALibraryThatStartsSlowly(t *testing.T) {
	h, s := gpuHost(t, "* nvmlInit_v2 wait 1500", "7 nvmlDeviceValidateInforom 14")
	expect(t, inTime(t, h, s, inforomTimeout, check.Finding{}), check.Warn, "GPU 7 (0000:17:00.0) has a corrupted infoROM")
}

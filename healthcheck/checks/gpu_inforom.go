// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gojail/gojail/healthcheck/check"
)

// Reading an infoROM from the GPU's flash takes long.
const (
	inforomAgain   = 24 * time.Hour // interval between two reads of one infoROM
	inforomEnough  = time.Second    // no read starts after this time; the next run reads the others
	inforomTimeout = 8 * time.Second
	inforomSpare   = time.Second // part of inforomTimeout that is reserved for recording a GPU that hangs
)

// inforom is the last result of NVML for one infoROM.
type inforom struct {
	At   int64    `json:"at,omitempty"` // Unix seconds; 0: not yet read
	Code nvmlCode `json:"code,omitempty"`
}

// newInforom returns the result of a read. The result for a lost GPU has no time, since the GPU
// may come back at any time.
func newInforom(at time.Time, code nvmlCode) inforom {
	if code == nvmlLost || code == nvmlReset {
		return inforom{Code: code}
	}
	return inforom{at.Unix(), code}
}

// isDue reports whether the infoROM has to be read again.
func (i inforom) isDue(now time.Time) bool {
	age := now.Sub(time.Unix(i.At, 0))
	return age < 0 || age >= inforomAgain
}

// inforomAnswer is the result for a GPU, by its name, or for the whole library ("").
type inforomAnswer struct {
	gpu string
	inforom
}

// gpuInforom lets the GPUs verify the checksums of their infoROMs once a day, and reports the
// stored results in between. Most runs do not query the library.
func gpuInforom(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	if hasNoGPUs(h, s) {
		return noGPU
	}
	var stored map[string]inforom
	if json.Unmarshal(h.State, &stored) != nil {
		stored = nil
	}
	now := stored
	if len(stored) == 0 || isAnyDue(stored, h.Now()) {
		if end, limited := ctx.Deadline(); limited {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, end.Add(-inforomSpare))
			defer cancel()
		}
		answers := make(chan inforomAnswer, 1+3*maxGPUs)
		go readInforoms(s.GPU.Library, stored, h.Now(), answers)
		now = collectInforoms(ctx, answers)
	}
	if library, failed := now[""]; failed {
		return check.NewFinding(check.Unknown, "NVML does not work: %s", library.Code)
	}
	if len(now) == 0 {
		return check.NewFinding(check.Unknown, "NVML shows no GPU")
	}
	f := judgeInforoms(now)
	f.State, _ = json.Marshal(now)
	return f
}

// isAnyDue reports whether any infoROM has to be read again.
func isAnyDue(all map[string]inforom, now time.Time) bool {
	for _, one := range all {
		if one.isDue(now) {
			return true
		}
	}
	return false
}

// collectInforoms returns the last result for each GPU received until ctx ends.
func collectInforoms(ctx context.Context, answers <-chan inforomAnswer) map[string]inforom {
	all := map[string]inforom{"": {Code: nvmlTimeout}} // until the library has answered
	for {
		select {
		case a, more := <-answers:
			if !more {
				return all
			}
			delete(all, "")
			if a.gpu != "" || a.Code != nvmlOK {
				all[a.gpu] = a.inforom
			}
		case <-ctx.Done():
			return all
		}
	}
}

// readInforoms reports the names of all GPUs before the first infoROM is read, so that a GPU
// that hangs does not hide the others from the next run.
func readInforoms(path string, stored map[string]inforom, now time.Time, answers chan<- inforomAnswer) {
	defer close(answers)
	n, code := openNVML(path)
	if code != nvmlOK {
		answers <- inforomAnswer{inforom: inforom{Code: code}}
		return
	}
	defer n.close()
	count, code := callGetter(n, "nvmlDeviceGetCount_v2", n.DeviceGetCount)
	answers <- inforomAnswer{inforom: inforom{Code: code}}
	due := map[string]nvml.Device{}
	for i := range min(count, maxGPUs) {
		g := newGPU(i)
		a, code := n.openGPU(g)
		one := stored[g.String()]
		switch {
		case code != nvmlOK:
			one = inforom{Code: code}
		case one.isDue(now):
			due[g.String()], one = a.device, inforom{}
		}
		answers <- inforomAnswer{g.String(), one}
	}
	began := time.Now() // loading the library can take seconds, and at least one GPU must be read
	for gpu, device := range due {
		if time.Since(began) > inforomEnough {
			break
		}
		answers <- inforomAnswer{gpu, newInforom(now, nvmlTimeout)} // replaced by the next result for this GPU
		code := n.callFunction("nvmlDeviceValidateInforom", device.ValidateInforom)
		answers <- inforomAnswer{gpu, newInforom(now, code)}
	}
}

// judgeInforoms returns the finding for the stored results.
func judgeInforoms(all map[string]inforom) check.Finding {
	var p problems
	unsupported := 0
	for gpu, one := range all {
		switch {
		case one == inforom{}: // not yet read
		case one.Code == nvmlOK:
		case one.Code == nvmlInforom:
			p.addWarning("%s has a corrupted infoROM", gpu)
		case one.Code == nvmlNotSupported, one.Code == nvmlNoFunction:
			unsupported++
		default:
			p.addUnknown("%s: infoROM: %s", gpu, one.Code)
		}
	}
	if unsupported == len(all) {
		return check.NewFinding(check.NotApplicable, "no GPU can verify its infoROM")
	}
	return p.buildFinding("no infoROM is corrupted")
}

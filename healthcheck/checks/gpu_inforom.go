// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gojail/gojail/healthcheck/check"
)

// An infoROM is read from the GPU's flash, which takes long.
const (
	inforomAgain   = 24 * time.Hour // not before that is one read again
	inforomEnough  = time.Second    // none is begun after that; the next run has the others
	inforomTimeout = 8 * time.Second
	inforomSpare   = time.Second // of inforomTimeout: for the memory of one that hangs
)

// inforom is what NVML last said of one.
type inforom struct {
	At   int64    `json:"at,omitempty"` // Unix seconds; 0: it was not read
	Code nvmlCode `json:"code,omitempty"`
}

// readInforom is what came of reading one. A GPU that was lost may come back any time.
func readInforom(at time.Time, code nvmlCode) inforom {
	if code == nvmlLost || code == nvmlReset {
		return inforom{Code: code}
	}
	return inforom{at.Unix(), code}
}

func (i inforom) due(now time.Time) bool {
	age := now.Sub(time.Unix(i.At, 0))
	return age < 0 || age >= inforomAgain
}

// inforomAnswer is about a GPU by its name, or about the whole library.
type inforomAnswer struct {
	gpu string
	inforom
}

// gpuInforom has the GPUs verify the checksums of their infoROMs, each once a day,
// and tells until then what came of it. Most runs do not ask the library.
func gpuInforom(ctx context.Context, h *check.Host, s *check.Settings) check.Finding {
	if noGPUs(h, s) {
		return noGPU
	}
	var kept map[string]inforom
	if json.Unmarshal(h.Kept, &kept) != nil {
		kept = nil
	}
	now := kept
	if len(kept) == 0 || anyDue(kept, h.Now()) {
		if end, limited := ctx.Deadline(); limited {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, end.Add(-inforomSpare))
			defer cancel()
		}
		answers := make(chan inforomAnswer, 1+3*maxGPUs)
		go askInforoms(s.GPU.Library, kept, h.Now(), answers)
		now = collectInforoms(ctx, answers)
	}
	if library, failed := now[""]; failed {
		return check.Found(check.Unknown, "NVML does not work: %s", library.Code)
	}
	if len(now) == 0 {
		return check.Found(check.Unknown, "NVML shows no GPU")
	}
	f := judgeInforoms(now)
	f.Keep, _ = json.Marshal(now)
	return f
}

func anyDue(all map[string]inforom, now time.Time) bool {
	for _, one := range all {
		if one.due(now) {
			return true
		}
	}
	return false
}

// collectInforoms takes the last answer about each, until ctx ends.
func collectInforoms(ctx context.Context, answers <-chan inforomAnswer) map[string]inforom {
	all := map[string]inforom{"": {Code: nvmlTimeout}} // till the library has answered
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

// askInforoms names all GPUs before it has one read: one that hangs must not hide
// the others from the next run.
func askInforoms(path string, kept map[string]inforom, now time.Time, answers chan<- inforomAnswer) {
	defer close(answers)
	n, code := openNVML(path)
	if code != nvmlOK {
		answers <- inforomAnswer{inforom: inforom{Code: code}}
		return
	}
	defer n.close()
	count, code := get(n, "nvmlDeviceGetCount_v2", n.DeviceGetCount)
	answers <- inforomAnswer{inforom: inforom{Code: code}}
	due := map[string]nvml.Device{}
	for i := range min(count, maxGPUs) {
		g := newGPU(i)
		a, code := n.about(g)
		one := kept[g.String()]
		switch {
		case code != nvmlOK:
			one = inforom{Code: code}
		case one.due(now):
			due[g.String()], one = a.device, inforom{}
		}
		answers <- inforomAnswer{g.String(), one}
	}
	began := time.Now() // the library's own start can take seconds, and one GPU is to be read
	for gpu, device := range due {
		if time.Since(began) > inforomEnough {
			break
		}
		answers <- inforomAnswer{gpu, readInforom(now, nvmlTimeout)} // unless another one comes
		code := n.call("nvmlDeviceValidateInforom", device.ValidateInforom)
		answers <- inforomAnswer{gpu, readInforom(now, code)}
	}
}

func judgeInforoms(all map[string]inforom) check.Finding {
	var p problems
	unsupported := 0
	for gpu, one := range all {
		switch {
		case one == inforom{}: // its turn comes
		case one.Code == nvmlOK:
		case one.Code == nvmlInforom:
			p.warned("%s has a corrupted infoROM", gpu)
		case one.Code == nvmlNotSupported, one.Code == nvmlNoFunction:
			unsupported++
		default:
			p.unclear("%s: infoROM: %s", gpu, one.Code)
		}
	}
	if unsupported == len(all) {
		return check.Found(check.NotApplicable, "no GPU can verify its infoROM")
	}
	return p.finding("no infoROM is corrupted")
}

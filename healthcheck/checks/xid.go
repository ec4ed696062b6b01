// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
)

// Which XIDs matter. After NVIDIA's catalogue of XIDs, where its immediate action
// is a reset of the GPU, a restart of the machine or a visit by the vendor: drain.
// What an application can cause by itself (13, 31, 43, 45 ...) is not here, and ignored.
var (
	xidDrain = []int{46, 48, 62, 64, 74, 79, 95, 110, 119, 120, 136, 140, 143, 151, 155, 156, 158}
	xidWarn  = []int{54, 63, 78, 81, 92, 94, 109, 121, 167, 168, 171, 172}
	// These say in their own words whether they are fatal.
	xidByText = []int{144, 145, 146, 147, 148, 149, 150}
)

// 154 tells of the action that a GPU wants.
const xidRecovery = 154

var (
	xidLine = regexp.MustCompile(`^NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]{7,16})\)[^:]*: (\d{1,4}), ?(.*)`)
	sxid    = regexp.MustCompile(`^nvidia-nvswitch\d*: SXid \((?:PCI:)?([0-9a-fA-F:.]{7,16})\)[^:]*: (\d{1,5}), (Fatal|Non-fatal)`)
	// The last such word is the driver's: a process's name may come before.
	linkEvent = regexp.MustCompile(`^.*\b(Fatal|Nonfatal) `)
	// Two forms of the driver's line, which comes without an XID when the bus is dead.
	offBus = regexp.MustCompile(`^NVRM: (?:The NVIDIA GPU |GPU (?:at )?(?:PCI:)?)([0-9a-fA-F:.]{7,16}).{0,60}fallen off the bus`)
)

// xid reads the driver's errors in the kernel's log. Once seen they are kept until
// the node boots, though the log may be overwritten: a GPU does not mend itself.
func xid(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	var before xidKept
	if json.Unmarshal(h.Kept, &before) != nil {
		before = xidKept{}
	}
	lines, err := readKernelLog(h.Roots.Kmsg)
	if err != nil {
		return check.Found(check.Unknown, "%s", line(err.Error()))
	}
	kept := before.Seen
	if kept == nil {
		kept = map[string]check.Verdict{}
	}
	for _, l := range after(lines, before.Forgotten) {
		if strings.Contains(l.Text, "NVRM") || strings.Contains(l.Text, "SXid") {
			before.Driver = true
			rememberXID(kept, l.Text, s.XID)
		}
	}
	keep, _ := json.Marshal(xidKept{before.Forgotten, kept, before.Driver})
	if !before.Driver && before.Record == 0 && len(kept) == 0 {
		return check.Finding{Verdict: check.NotApplicable, Text: "the kernel's log has no word of the NVIDIA driver", Keep: keep}
	}
	var p problems
	for text, verdict := range kept {
		switch xidPolicy(text, s.XID, verdict) { // of today: a person may have changed it since
		case check.Fail:
			p.failed("%s", text)
		case check.Warn:
			p.warned("%s", text)
		}
	}
	f := p.finding("no XID that matters")
	f.Keep = keep
	return f
}

// xidKept is what was seen since boot, by stable texts.
type xidKept struct {
	check.Forgotten
	Seen   map[string]check.Verdict `json:"seen,omitempty"`
	Driver bool                     `json:"driver,omitempty"` // the log had a word of it
}

// rememberXID takes one line. Where the driver says that a GPU wants no action any
// more it has been reset, and what was kept of it is forgotten.
func rememberXID(kept map[string]check.Verdict, text string, policy map[string]string) {
	gpu, stable, verdict := judgeXID(text)
	switch {
	case gpu == "":
	case stable == "":
		maps.DeleteFunc(kept, func(text string, _ check.Verdict) bool { return strings.Contains(text, " "+gpu) })
	case xidPolicy(stable, policy, verdict) != check.OK:
		kept[stable] = verdict
	}
}

// judgeXID gives a line its GPU, its stable text and its verdict. No GPU: it is no
// XID; no text: the GPU has recovered.
func judgeXID(text string) (gpu, stable string, verdict check.Verdict) {
	if chosen(text) {
		return "", "", check.OK
	}
	if m := xidLine.FindStringSubmatch(text); m != nil {
		gpu = place(m[1])
		code, _ := strconv.Atoi(m[2])
		stable, verdict = "XID "+m[2]+" on GPU "+gpu, xidVerdict(code, m[3])
		if code == xidRecovery && verdict == check.OK {
			stable = ""
		}
		return gpu, stable, verdict
	}
	if m := sxid.FindStringSubmatch(text); m != nil {
		gpu, verdict = place(m[1]), check.Warn
		if m[3] == "Fatal" {
			verdict = check.Fail
		}
		return gpu, "SXid " + m[2] + " on NVSwitch " + gpu, verdict
	}
	if m := offBus.FindStringSubmatch(text); m != nil {
		gpu = place(m[1])
		return gpu, "GPU " + gpu + " has fallen off the bus", check.Fail
	}
	return "", "", check.OK
}

// place is a GPU's address without the function, which not all lines have.
func place(pci string) string {
	return strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(pci), ":"), ".0")
}

func xidVerdict(code int, words string) check.Verdict {
	switch {
	case slices.Contains(xidDrain, code):
		return check.Fail
	case slices.Contains(xidWarn, code):
		return check.Warn
	case slices.Contains(xidByText, code):
		if m := linkEvent.FindStringSubmatch(words); m != nil && m[1] == "Fatal" {
			return check.Fail
		}
		return check.Warn
	case code == xidRecovery:
		return recoveryVerdict(words)
	}
	return check.OK
}

// recoveryVerdict reads "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)".
func recoveryVerdict(words string) check.Verdict {
	at := strings.LastIndex(words, " to ") // a process's name, before that, may have any words
	switch {
	case at < 0:
		return check.Warn
	case strings.Contains(words[at:], "(None)"):
		return check.OK
	}
	return check.Fail
}

// xidPolicy is what health.toml says about the XID of a stable text, else the verdict.
func xidPolicy(stable string, policy map[string]string, verdict check.Verdict) check.Verdict {
	code, found := strings.CutPrefix(stable, "XID ")
	if !found {
		return verdict
	}
	code, _, _ = strings.Cut(code, " ")
	switch policy[code] {
	case "drain":
		return check.Fail
	case "warn":
		return check.Warn
	case "ignore":
		return check.OK
	}
	return verdict
}

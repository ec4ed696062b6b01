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

// Relevant XIDs. In NVIDIA's catalogue of XIDs, the immediate action of those that drain is a
// reset of the GPU, a restart of the machine or a service by the vendor. XIDs that an
// application can cause by itself (13, 31, 43, 45 ...) are not listed and are ignored.
var (
	xidDrain = []int{46, 48, 62, 64, 74, 79, 95, 110, 119, 120, 136, 140, 143, 151, 155, 156, 158}
	xidWarn  = []int{54, 63, 78, 81, 92, 94, 109, 121, 167, 168, 171, 172}
	// The text of these XIDs states whether they are fatal.
	xidByText = []int{144, 145, 146, 147, 148, 149, 150}
)

// xidRecovery reports the recovery action that a GPU requires.
const xidRecovery = 154

var (
	xidLine  = regexp.MustCompile(`^NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]{7,16})\)[^:]*: (\d{1,4}), ?(.*)`)
	sxidLine = regexp.MustCompile(`^nvidia-nvswitch\d*: SXid \((?:PCI:)?([0-9a-fA-F:.]{7,16})\)[^:]*: (\d{1,5}), (Fatal|Non-fatal)`)
	// The last such word is the driver's: the name of a process may precede it.
	linkEvent = regexp.MustCompile(`^.*\b(Fatal|Nonfatal) `)
	// Two forms of the driver's line, which appears without an XID when the bus is dead.
	offBusLine = regexp.MustCompile(`^NVRM: (?:The NVIDIA GPU |GPU (?:at )?(?:PCI:)?)([0-9a-fA-F:.]{7,16}).{0,60}fallen off the bus`)
)

// xid reports the driver's errors in the kernel's log. They are kept until the node boots,
// since the log may be overwritten and a GPU does not recover by itself.
func xid(_ context.Context, h *check.Host, s *check.Settings) check.Finding {
	var before xidState
	if json.Unmarshal(h.State, &before) != nil {
		before = xidState{}
	}
	lines, err := readKernelLog(h.Roots.Kmsg)
	if err != nil {
		return check.NewFinding(check.Unknown, "%s", formatLine(err.Error()))
	}
	seen := before.Seen
	if seen == nil {
		seen = map[string]check.Verdict{}
	}
	for _, l := range dropForgotten(lines, before.Forgotten) {
		if strings.Contains(l.Text, "NVRM") || strings.Contains(l.Text, "SXid") {
			before.Driver = true
			rememberXID(seen, l.Text, s.XID)
		}
	}
	keep, _ := json.Marshal(xidState{before.Forgotten, seen, before.Driver})
	if !before.Driver && before.Record == 0 && len(seen) == 0 {
		return check.Finding{Verdict: check.NotApplicable, Text: "the kernel's log has no message of the NVIDIA driver", State: keep}
	}
	var p problems
	for text, verdict := range seen {
		switch lookUpXIDPolicy(text, s.XID, verdict) { // with the current policy, which may have changed since
		case check.Fail:
			p.addFailure("%s", text)
		case check.Warn:
			p.addWarning("%s", text)
		}
	}
	f := p.buildFinding("no relevant XID")
	f.State = keep
	return f
}

// xidState is the set of errors since boot, by stable text.
type xidState struct {
	check.Forgotten
	Seen   map[string]check.Verdict `json:"seen,omitempty"`
	Driver bool                     `json:"driver,omitempty"` // the log had a message of the driver
}

// rememberXID records the error of one line. If the driver reports that a GPU no longer
// requires an action, the GPU was reset, and its errors are removed.
func rememberXID(seen map[string]check.Verdict, text string, policy map[string]string) {
	gpu, stable, verdict := judgeXID(text)
	switch {
	case gpu == "":
	case stable == "":
		maps.DeleteFunc(seen, func(text string, _ check.Verdict) bool { return strings.Contains(text, " "+gpu) })
	case lookUpXIDPolicy(stable, policy, verdict) != check.OK:
		seen[stable] = verdict
	}
}

// judgeXID returns the GPU, the stable text and the verdict of a line. An empty GPU means that
// the line is no XID, an empty text that the GPU has recovered.
func judgeXID(text string) (gpu, stable string, verdict check.Verdict) {
	if isUserChosen(text) {
		return "", "", check.OK
	}
	if m := xidLine.FindStringSubmatch(text); m != nil {
		gpu = trimFunction(m[1])
		code, _ := strconv.Atoi(m[2])
		stable, verdict = "XID "+m[2]+" on GPU "+gpu, judgeXIDCode(code, m[3])
		if code == xidRecovery && verdict == check.OK {
			stable = ""
		}
		return gpu, stable, verdict
	}
	if m := sxidLine.FindStringSubmatch(text); m != nil {
		gpu, verdict = trimFunction(m[1]), check.Warn
		if m[3] == "Fatal" {
			verdict = check.Fail
		}
		return gpu, "SXid " + m[2] + " on NVSwitch " + gpu, verdict
	}
	if m := offBusLine.FindStringSubmatch(text); m != nil {
		gpu = trimFunction(m[1])
		return gpu, "GPU " + gpu + " has fallen off the bus", check.Fail
	}
	return "", "", check.OK
}

// trimFunction returns a GPU's address without the function, which not all lines have.
func trimFunction(pci string) string {
	return strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(pci), ":"), ".0")
}

// judgeXIDCode returns the verdict of an XID.
func judgeXIDCode(code int, words string) check.Verdict {
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
		return judgeRecovery(words)
	}
	return check.OK
}

// judgeRecovery parses "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset
// Required)".
func judgeRecovery(words string) check.Verdict {
	at := strings.LastIndex(words, " to ") // the name of a process may precede it and have any words
	switch {
	case at < 0:
		return check.Warn
	case strings.Contains(words[at:], "(None)"):
		return check.OK
	}
	return check.Fail
}

// lookUpXIDPolicy returns the policy of health.toml for the XID of a stable text, or the
// verdict.
func lookUpXIDPolicy(stable string, policy map[string]string, verdict check.Verdict) check.Verdict {
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

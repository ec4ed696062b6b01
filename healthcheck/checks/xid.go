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

// gpuAddress matches a PCI address as drivers print it: domain, bus, device and function, of which
// the domain and the function may be missing, and the device in the lines of old drivers.
const gpuAddress = `([0-9a-fA-F]{2,8}:[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2})?(?:\.[0-9a-fA-F])?)`

// xidWhere matches what is between "Xid" and the number: the address, after which a MIG
// instance may follow ("GPU-I:05 GPU-CI:02"). Nothing needs to follow the number.
const xidWhere = ` \((?:PCI:)?` + gpuAddress + `(?: [^()]*)?\)[^:]{0,40}: *(\d{1,5})\b`

var (
	xidLine  = regexp.MustCompile(`^NVRM: Xid` + xidWhere + `(.*)`)
	sxidLine = regexp.MustCompile(`^nvidia-nvswitch\d*: SXid` + xidWhere + `[, ]*(.*)`)
	// Longer than the name of a process, which may precede it: the first match is the driver's.
	linkEvent = regexp.MustCompile(`\b(Fatal|Nonfatal) +XC\d i\d+ Link `)
	// In other forms the last such word is the driver's.
	linkWord = regexp.MustCompile(`^.*\b(Fatal|Nonfatal) `)
	// Longer than the name of a process, so that the first match is the driver's.
	recoveryAction = regexp.MustCompile(
		`GPU recovery action changed from 0x[0-9a-fA-F]+ \([^()]*\) to 0x[0-9a-fA-F]+ \(([^()]*)`)
)

// gpuEvents are messages of the driver about a GPU without an XID. A GPU that cannot be started
// is a warning: the driver may succeed the next time, and gpu-count drains if it does not.
var gpuEvents = []struct {
	line    *regexp.Regexp // its first group, if any, is the GPU
	verdict check.Verdict
	text    string // follows "GPU ADDRESS" or "a GPU"
}{
	{regexp.MustCompile(`^NVRM: GPU (?:at )?(?:PCI:)?` + gpuAddress + `:?(?: GPU)?(?: has)? fallen off the bus`),
		check.Fail, "has fallen off the bus"},
	{regexp.MustCompile(`^NVRM: The NVIDIA GPU ` + gpuAddress +
		`(?: \(PCI ID: [0-9a-fA-F:]*\)| installed in this system| has)* fallen off the bus`),
		check.Fail, "has fallen off the bus"},
	// The end of the same message, whose beginning was overwritten.
	{regexp.MustCompile(`^NVRM: *(?:\(PCI ID: [0-9a-fA-F:]*\) )?(?:installed in this system has )?fallen off the bus`),
		check.Fail, "has fallen off the bus"},
	// XIDs 119 and 120 precede this line, after which most of them are suppressed.
	{regexp.MustCompile(`^NVRM: Rate limiting GSP RPC error prints for GPU at (?:PCI:)?` + gpuAddress +
		`\b.*to be reset`),
		check.Fail, "does not answer its driver"},
	{regexp.MustCompile(`^NVRM: (?:GPU ` + gpuAddress + `: )?(?:RmInitAdapter|rm_init_adapter(?:\(\d+\))?) failed`),
		check.Warn, "cannot be started by its driver"},
	{regexp.MustCompile(`^NVRM: The NVIDIA probe routine failed for \d+ device`),
		check.Warn, "cannot be started by its driver"},
	{regexp.MustCompile(`^NVRM: This PCI I/O region assigned to your NVIDIA device is invalid: .*\(PCI:` + gpuAddress),
		check.Warn, "has an invalid PCI region"},
}

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
		return check.Finding{Verdict: check.NotApplicable, Text: "the kernel's log has no message of the NVIDIA driver",
			State: keep}
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
		// Verdicts are OK, Warn and Fail here: a harmless event does not hide an earlier fatal one.
		seen[stable] = max(seen[stable], verdict)
	}
}

// judgeXID returns the GPU, the stable text and the verdict of a line. An empty GPU means that
// the line is no XID, an empty text that the GPU has recovered.
func judgeXID(text string) (gpu, stable string, verdict check.Verdict) {
	if isUserChosen(text) {
		return "", "", check.OK
	}
	if m := xidLine.FindStringSubmatch(text); m != nil {
		gpu = formatGPU(m[1])
		code, _ := strconv.Atoi(m[2])
		stable, verdict = "XID "+strconv.Itoa(code)+" on GPU "+gpu, judgeXIDCode(code, m[3])
		if code == xidRecovery && verdict == check.OK {
			stable = ""
		}
		return gpu, stable, verdict
	}
	if m := sxidLine.FindStringSubmatch(text); m != nil {
		gpu = formatGPU(m[1])
		return gpu, "SXid " + m[2] + " on NVSwitch " + gpu, judgeSXID(m[3])
	}
	for _, e := range gpuEvents {
		m := e.line.FindStringSubmatch(text)
		switch {
		case m == nil:
		case len(m) < 2 || m[1] == "":
			return "?", "a GPU " + e.text, e.verdict
		default:
			gpu = formatGPU(m[1])
			return gpu, "GPU " + gpu + " " + e.text, e.verdict
		}
	}
	return "", "", check.OK
}

// formatGPU returns a GPU's address in one form: with a domain of at least 4 digits, and
// without the function, which not all lines have. The addresses of old drivers, which lack
// the device ("0001:00"), remain.
func formatGPU(pci string) string {
	pci, _, _ = strings.Cut(strings.ToLower(pci), ".")
	domain, rest, _ := strings.Cut(pci, ":")
	switch {
	case strings.Contains(rest, ":"):
		domain = strings.TrimLeft(domain, "0")
		return strings.Repeat("0", max(0, 4-len(domain))) + domain + ":" + rest
	case len(domain) == 2:
		return "0000:" + pci
	}
	return pci
}

// judgeSXID returns the verdict of the text after an SXid. Without a severity it is a detail of
// the line before, or an event of the switch's own controller.
func judgeSXID(words string) check.Verdict {
	switch {
	case strings.HasPrefix(words, "Fatal"), strings.HasSuffix(words, "Shutting Down"):
		return check.Fail
	case strings.Contains(words, "isengaged"), strings.Contains(words, "Deactivated"):
		return check.OK // the end of an event, which has a number of its own
	}
	return check.Warn
}

// judgeXIDCode returns the verdict of an XID.
func judgeXIDCode(code int, words string) check.Verdict {
	switch {
	case slices.Contains(xidDrain, code):
		return check.Fail
	case slices.Contains(xidWarn, code):
		return check.Warn
	case slices.Contains(xidByText, code):
		m := linkEvent.FindStringSubmatch(words)
		if m == nil {
			m = linkWord.FindStringSubmatch(words)
		}
		if m != nil && m[1] == "Fatal" {
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
	m := recoveryAction.FindStringSubmatch(words)
	switch {
	case m == nil:
		return check.Warn
	case m[1] == "None":
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

// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/gojail/gojail/healthcheck/check"
)

// sign is a pattern of lines in the kernel's log that indicate a fault.
type sign struct {
	word    string         // substring of every such line, tested before the regular expression
	line    *regexp.Regexp // its first group, if any, is the device
	verdict check.Verdict
	text    string
}

// signs are the lines that indicate a fault. Events that programs in a jail can cause are not
// included: OOM in a job's cgroup, faults of a program. The texts are those of the kernel's
// sources, drivers/ and mm/. Patterns that drain are anchored at the beginning of the line, and
// before more letters than the name of a process has they leave no room for other words: see
// isUserChosen.
var signs = []sign{
	{"Out of memory", regexp.MustCompile(`^Out of memory: Kill(?:ed)? process`), check.Warn,
		"the node ran out of memory"},
	{"hung_task", regexp.MustCompile(`^hung_task: blocked tasks`), check.Warn, "tasks hang in the kernel"},
	{"blocked ", regexp.MustCompile(`^INFO: task .{1,80}:\d+ blocked (?:in I/O wait )?for more than \d+ seconds`),
		check.Warn, "tasks hang in the kernel"},
	{"BUG: soft lockup", regexp.MustCompile(`^(?:NMI )?(?:watchdog: )?BUG: soft lockup - CPU#\d`),
		check.Warn, "a CPU was locked up"},
	{"hard LOCKUP", regexp.MustCompile(`^(?:NMI )?(?:watchdog: )?(?:CPU ?\d+: )?Watchdog detected hard LOCKUP on`),
		check.Warn, "a CPU was locked up"},
	{"Machine Check", regexp.MustCompile(`^(?:mce: )?\[Hardware Error\]: CPU \d+: Machine Check(?: Exception)?: \d`),
		check.Warn, "machine check exceptions"},
	{"Hardware Error", regexp.MustCompile(`^(?:mce: |\{\d+\})?\[Hardware Error\]: ` +
		`.*(?:severity: (?:fatal|recoverable)|Uncorrected)`),
		check.Warn, "uncorrected hardware errors"},
	{"Memory failure", regexp.MustCompile(`^Memory failure: 0x[0-9a-f]+: `),
		check.Warn, "uncorrected memory errors"},
	{"I/O error", regexp.MustCompile(`^(?:blk_update_request: |print_req_error: |Buffer )?` +
		`I/O error(?:,| on) dev(?:ice)? ` + diskName + `, (?:sector|logical block) \d`), check.Warn, "I/O errors on"},
	{"medium error", regexp.MustCompile(`^(?:blk_update_request: |print_req_error: )?critical medium error, dev ` +
		diskName + `, sector \d+(?: |$)`), check.Fail, "medium errors on"},
	{"Remounting filesystem", regexp.MustCompile(`^[A-Z][A-Za-z0-9]{2,7}(?:-fs)? \(` + diskName +
		`\): Remounting filesystem read-only$`), check.Fail, "a file system became read-only after errors:"},
	{"forced readonly", regexp.MustCompile(`^BTRFS info \(device ` + diskName +
		`(?::? state [A-Z]+)?\): forced readonly$`),
		check.Fail, "a file system became read-only after errors:"},
	{"Shutting down filesystem", regexp.MustCompile(`^XFS \(` + diskName + `\): (?:[A-Za-z]+ )?(?:I/O Error|` +
		`Corruption of (?:in-memory data|on-disk metadata)|Block device removal|initiated shutdown received)` +
		`.*\. +Shutting down filesystem\.?$`), check.Fail, "a file system was shut down after errors:"},
	{"Disabling device after reset failure", regexp.MustCompile(`^nvme (nvme\d+): ` +
		`Disabling device after reset failure: -?\d+$`),
		check.Fail, "the kernel gave up on"},
	{"emoving after probe failure", regexp.MustCompile(`^nvme (nvme\d+): ` +
		`[Rr]emoving after probe failure status: -?\d+$`),
		check.Fail, "the kernel gave up on"},
	{"timeout, ", regexp.MustCompile(`^nvme (nvme\d+): I/O (?:tag )?\d+ .*timeout, (?:reset|disable) controller`),
		check.Warn, "timeouts of"},
	{"controller is down", regexp.MustCompile(`^nvme (nvme\d+): controller is down; will reset`),
		check.Warn, "timeouts of"},
	{"no available path", regexp.MustCompile(`^block (nvme\w+): no available path - `), check.Warn, "no path to"},
	{"beyond end of device", regexp.MustCompile(`^(?:[^:]{1,60}: )?attempt to access beyond end of device`),
		check.Warn, "a file system reaches beyond the end of its device"},
	{"while writing superblock", regexp.MustCompile(`^EXT[234]-fs \(` + diskName +
		`\): I/O error while writing superblock$`),
		check.Fail, "a superblock cannot be written:"},
	{"Cannot continue operation",
		regexp.MustCompile(`^md/raid\d*:(md\w+): Cannot continue operation \(\d+/\d+ failed\)`),
		check.Fail, "too many disks failed in"},
	{"failing array", regexp.MustCompile(`^md/(?:raid0|linear):(md\w+): ` +
		`Disk failure on ` + diskNameOnly + ` detected, failing array`),
		check.Fail, "too many disks failed in"},
	{"Disk failure on", regexp.MustCompile(`^md/raid\d*:(md\w+): Disk failure on `), check.Warn, "a disk failed in"},
	{"insufficient power", regexp.MustCompile(`^mlx5_core ` + pciFunction + `[: ].*insufficient power`),
		check.Warn, "too little power from the slot of"},
	{"High Temperature", regexp.MustCompile(`^mlx5_core ` + pciFunction + `[: ].*Port module event.*High Temperature`),
		check.Warn, "a hot transceiver in"},
	{"mlx5_core", regexp.MustCompile(`^mlx5_core ` + pciFunction + `: \w+:\d+:\(pid \d+\): ` +
		`(?:device's health compromised - reached miss count|Fatal error \d+ detected)`), check.Warn,
		"failed firmware of"},
	{"(Fatal)", regexp.MustCompile(`^pcieport ` + pciFunction +
		`: AER: (?:Multiple )?(?:Uncorrected|Uncorrectable) \(Fatal\) error `),
		check.Warn, "fatal PCIe errors below"},
	{"(Fatal)", regexp.MustCompile(`^[\w-]+ ` + pciFunction +
		`: (?:AER: )?PCIe Bus Error: severity=(?:Uncorrected|Uncorrectable) \(Fatal\)`),
		check.Warn, "fatal PCIe errors of"},
	{"device recovery failed", regexp.MustCompile(`^pcieport ` + pciFunction + `: AER: device recovery failed`),
		check.Warn, "fatal PCIe errors below"},
	{"pciehp: Slot(", regexp.MustCompile(`^pcieport ` + pciFunction +
		`: pciehp: Slot\([^()]*\): (?:Link Down|Card not present)`),
		check.Warn, "a device left the slot of"},
}

// Patterns of devices' names: of the kernel's disks ("sda1", "dm-0", "md_d0", "cciss!c0d0p1"), and of PCI functions.
const (
	diskNameOnly = `[A-Za-z0-9_!.-]{1,32}`
	diskName     = `(` + diskNameOnly + `)`
	pciFunction  = `([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])`
)

// removable matches devices that fail without a fault of the node: removable media, files used
// as disks, and disks whose driver is a user's program (ublk).
var removable = regexp.MustCompile(`^(?:sr|fd|loop|nbd|zram|ram|ublkb)\d`)

// kernelLog searches the kernel's log since boot for signs of faults. Faults are kept until the
// node boots, since the log may be overwritten.
func kernelLog(_ context.Context, h *check.Host, _ *check.Settings) check.Finding {
	var before kernelLogState
	if json.Unmarshal(h.State, &before) != nil {
		before = kernelLogState{}
	}
	lines, err := readKernelLog(h.Roots.Kmsg)
	if err != nil {
		return check.NewFinding(check.Unknown, "%s", formatLine(err.Error()))
	}
	if len(lines) == 0 {
		return check.NewFinding(check.Unknown, "the kernel's log %s contains no line written by the kernel",
			h.Roots.Kmsg)
	}
	p := problems{fail: before.Fail}
	for _, l := range dropForgotten(lines, before.Forgotten) {
		for _, s := range signs {
			if !strings.Contains(l.Text, s.word) {
				continue
			}
			m := s.line.FindStringSubmatch(l.Text)
			if m == nil || isUserChosen(l.Text) {
				continue
			}
			text := s.text
			if len(m) > 1 && removable.MatchString(m[1]) {
				continue
			}
			if len(m) > 1 {
				text += " " + m[1]
			}
			if s.verdict == check.Fail {
				p.addFailure("%s", text)
			} else {
				p.addWarning("%s", text)
			}
		}
	}
	p.fail = slices.Compact(slices.Sorted(slices.Values(p.fail)))
	p.warn = slices.Compact(slices.Sorted(slices.Values(p.warn)))
	f := p.buildFinding("the kernel's log shows no fault")
	f.State, _ = json.Marshal(kernelLogState{before.Forgotten, p.fail})
	return f
}

// kernelLogState is the list of faults kept until the node boots.
type kernelLogState struct {
	check.Forgotten
	Fail []string `json:"fail,omitempty"`
}

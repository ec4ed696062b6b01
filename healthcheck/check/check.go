// SPDX-License-Identifier: Apache-2.0

// Package check defines the types of the health check: a Check is a row of the table in package
// checks, a Host is the node that it judges, and a Finding with its Verdict is the result. The
// package has no logic and imports no other package of gojail.
package check

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Verdict is the result of a check.
type Verdict int

// Only Fail can drain a node. Unknown means that the check could not determine the state; it
// neither drains nor undrains a node. NotApplicable means that the node lacks the item and is
// not configured to have it; a configured item that is missing is Fail.
const (
	Unknown Verdict = iota // the zero value, so that an unset Finding is not reported as good
	OK
	Warn
	Fail
	NotApplicable
)

var verdicts = [...]string{"unknown", "ok", "warn", "fail", "not applicable"}

func (v Verdict) String() string {
	if v < 0 || int(v) >= len(verdicts) {
		return fmt.Sprintf("verdict %d", int(v))
	}
	return verdicts[v]
}

// MarshalText returns the verdict's name, as String does.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText parses the output of MarshalText.
func (v *Verdict) UnmarshalText(text []byte) error {
	for i, name := range verdicts {
		if name == string(text) {
			*v = Verdict(i)
			return nil
		}
	}
	return fmt.Errorf("unknown verdict %.30q", text)
}

// Severity is the consequence of a check's Fail.
type Severity string

// The severities.
const (
	Drain    Severity = "drain" // the node gets no jobs until the fault is repaired
	WarnOnly Severity = "warn"  // the fault appears in logs and metrics only
)

// Finding is the result of one run of a check.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	// One line of printable ASCII, at most 120 characters: the reason of a drain. The same
	// fault has the same text in each run, without counters, times or process IDs.
	Text string `json:"text"`
	// Figures for logs and --json; may be empty.
	Detail  string   `json:"detail,omitempty"`
	Metrics []Metric `json:"metrics,omitempty"`
	// The check's state, passed to its next run as Host.State until the node boots; nil leaves
	// the stored state unchanged.
	State json.RawMessage `json:"keep,omitempty"`
	// Whether the failure is storage that does not answer, and nothing else. While it does not, Slurm cannot kill
	// processes that wait for it.
	Silent bool `json:"silent,omitempty"`
}

// Forgotten is the State of a check whose earlier findings were cleared by gojail-healthcheck
// forget.
type Forgotten struct {
	// Number of the last record in the kernel's log at that time: it and all earlier records
	// are ignored. 0 if nothing was cleared.
	Record int64 `json:"forgotten,omitempty"`
}

// NewFinding returns a Finding with a formatted text.
func NewFinding(v Verdict, format string, args ...any) Finding {
	return Finding{Verdict: v, Text: fmt.Sprintf(format, args...)}
}

// Metric is one value for Prometheus, exported as gojail_health_<Name>.
type Metric struct {
	// without the prefix, with the unit as its suffix: "clock_offset_seconds"
	Name    string            `json:"name"`
	Help    string            `json:"help,omitempty"`    // of the first Metric with this name
	Counter bool              `json:"counter,omitempty"` // false: a gauge
	Labels  map[string]string `json:"labels,omitempty"`  // the same keys in all Metrics of one name
	Value   float64           `json:"value"`
}

// Check is one row of the table of checks.
type Check struct {
	Name     string // lower case, digits and '-': "gpu-lost"
	Subject  string // the checked item, a noun phrase: "volatile uncorrectable ECC errors in SRAM (NVML)"
	Remedy   string // what the administrator should do when the check fails, a sentence
	Severity Severity
	Timeout  time.Duration // of one run
	// BadRuns is the number of consecutive runs with Fail after which the check counts as bad,
	// GoodRuns the number with OK or Warn after which it counts as good again. Zero means one.
	BadRuns, GoodRuns int
	// Child groups the checks that hang for the same reason: they run one after the other in one process, which is
	// killed at the deadline of a check. A check that exceeds its Timeout has the verdict HangVerdict.
	Child       string
	HangVerdict Verdict // Fail or Unknown
	// HangText returns the text of the finding for a check that exceeds its Timeout, from what an earlier
	// run has seen, or "". The function must not block. nil: "does not answer".
	HangText func(h *Host) string
	// SlowReason returns why a healthy node may also exceed the Timeout, or "" if it may not.
	// With a reason, a timeout is a warning until a later run finds that the killed process
	// still exists, which counts as a hang. The function must not block. nil: no reason exists.
	SlowReason func(h *Host) string
	// SpareReason returns why a hang must not drain the node, from what an earlier run has seen, or "". With a reason
	// it is a warning. The function must not block. nil: no reason exists.
	SpareReason func(h *Host) string
	Run         func(ctx context.Context, h *Host) Finding
}

// Host is the node that the checks judge.
type Host struct {
	Roots     Roots
	Node      string // name of the node in Slurm
	Settings  *Settings
	SlurmConf string // path of slurm.conf; "": Slurm's default paths
	Now       func() time.Time
	DryRun    bool // a check that writes something for others does not
	// Command runs a program with a minimal environment until ctx ends, and returns its
	// standard output. An *exec.ExitError holds the exit
	// code and the standard error.
	Command func(ctx context.Context, name string, args ...string) ([]byte, error)
	// Cache for data that several checks of one process read; nil: each check reads for itself.
	Shared *Shared
	// Finding.State of this check's last run since boot, nil if there is none.
	State json.RawMessage
}

// Roots is the set of paths below which checks read; NodeRoots returns those of a real node.
type Roots struct {
	Sys  string // /sys
	Proc string // /proc
	Dev  string // /dev
	Etc  string // /etc
	Run  string // /run
	Kmsg string // /dev/kmsg
}

// NodeRoots returns the paths of a real node.
func NodeRoots() Roots {
	return Roots{Sys: "/sys", Proc: "/proc", Dev: "/dev", Etc: "/etc", Run: "/run", Kmsg: "/dev/kmsg"}
}

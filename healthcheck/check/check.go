// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Verdict is what a check thinks of the node.
type Verdict int

// Only Fail can drain a node. Unknown is for what the check could not find out; it
// neither drains a node nor brings one back. NotApplicable is for what the node
// does not have and is not configured to have: something that is missing is Fail.
const (
	Unknown Verdict = iota // the zero value, so that a Finding that nobody filled in is no good news
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

// MarshalText writes the verdict as String does.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (v *Verdict) UnmarshalText(text []byte) error {
	for i, name := range verdicts {
		if name == string(text) {
			*v = Verdict(i)
			return nil
		}
	}
	return fmt.Errorf("%.30q is no verdict", text)
}

// Severity is what a check's Fail leads to.
type Severity string

// The severities.
const (
	Drain    Severity = "drain" // the node gets no more jobs until it is mended
	WarnOnly Severity = "warn"  // logs and metrics
)

// Finding is what one run of a check saw.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	// Text is one line of ASCII for people, at most 120 characters: the reason of a
	// drain. The same fault has the same text in each run: no counters, times or pids.
	Text string `json:"text"`
	// Detail has the numbers, for logs and --json; may be empty.
	Detail  string   `json:"detail,omitempty"`
	Metrics []Metric `json:"metrics,omitempty"`
	// Keep is handed to the next run as Host.Kept, until the node boots; nil keeps what is there.
	Keep json.RawMessage `json:"keep,omitempty"`
}

// Forgotten is the Keep of a check that was told to forget what it has seen.
type Forgotten struct {
	// Record is the number of the last record of the kernel's log at that time: it
	// and those before it do not count any more. 0: nobody has told it to forget.
	Record int64 `json:"forgotten,omitempty"`
}

// Found is a Finding with a text.
func Found(v Verdict, format string, args ...any) Finding {
	return Finding{Verdict: v, Text: fmt.Sprintf(format, args...)}
}

// Metric is one number for Prometheus, as gojail_health_<Name>.
type Metric struct {
	Name    string            `json:"name"`              // without the prefix, with the unit at the end: "clock_offset_seconds"
	Help    string            `json:"help,omitempty"`    // of the first one with this name
	Counter bool              `json:"counter,omitempty"` // else a gauge
	Labels  map[string]string `json:"labels,omitempty"`  // the same keys for each Metric of one name
	Value   float64           `json:"value"`
}

// Check is one row of the list.
type Check struct {
	Name     string // lower case, digits and '-': "gpu-lost"
	Looks    string // what it looks at, half a sentence: "volatile uncorrectable ECC errors in SRAM (NVML)"
	Do       string // what to do when it fails, a sentence for the administrator
	Severity Severity
	Timeout  time.Duration // of one run
	// Bad is after how many runs in a row with Fail it counts, Good after how many
	// with OK or Warn it is mended. Zero is one.
	Bad, Good int
	// Child is for what can hang: the checks with the same Child run one after the
	// other in a process of that name, apart from the others, that is killed at a
	// deadline. A check that passes its Timeout there has the verdict Hang. Checks
	// with an empty Child share the process that slurmd waits for, and must not block.
	Child string
	Hang  Verdict // Fail or Unknown
	// Slow returns why a healthy node, too, may pass the Timeout, "" if it may not. With a
	// reason Hang is a warning, until a later run finds the process still there that was
	// killed: that one hangs. It must not block. nil: never.
	Slow func(h *Host) string
	// Absent may tell that the node has nothing for this check, so that its Run needs no
	// Child to say so. It must not block. nil: one can never tell beforehand.
	Absent func(h *Host) bool
	Run    func(ctx context.Context, h *Host) Finding
}

// Host is the node that checks look at.
type Host struct {
	Roots     Roots
	Node      string // its name in Slurm
	Settings  *Settings
	SlurmConf string // path of slurm.conf; empty: Slurm's default paths
	Now       func() time.Time
	// Command runs a program with a bare environment until ctx ends and returns what
	// it wrote to its standard output. For use in a Child only. An *exec.ExitError
	// has the exit code and the standard error.
	Command func(ctx context.Context, name string, args ...string) ([]byte, error)
	// Shared is what several checks of one process read, read once; nil: each check reads it itself.
	Shared *Shared
	// Kept is the Finding.Keep of this check's last run since boot, nil if there is none.
	Kept json.RawMessage
}

// Roots is where things are; "/" is the whole of a real node's.
type Roots struct {
	Sys  string // /sys
	Proc string // /proc
	Dev  string // /dev
	Etc  string // /etc
	Run  string // /run
	Kmsg string // /dev/kmsg
}

// NodeRoots is where things are on a real node.
func NodeRoots() Roots {
	return Roots{Sys: "/sys", Proc: "/proc", Dev: "/dev", Etc: "/etc", Run: "/run", Kmsg: "/dev/kmsg"}
}

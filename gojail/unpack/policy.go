// SPDX-License-Identifier: Apache-2.0

package unpack

import "fmt"

// Values of Policy.Devices.
const (
	DevicesDrop   = "drop"
	DevicesRefuse = "refuse"
	DevicesMake   = "make"
)

// Policy decides about entries that could give a user more rights.
type Policy struct {
	Devices   string `json:"devices"`   // DevicesDrop, DevicesRefuse or DevicesMake
	Setuid    bool   `json:"setuid"`    // set-ID bits of files and security.capability are kept
	Whiteouts bool   `json:"whiteouts"` // names with ".wh." remove files of lower layers
}

// Limits are the limits of one tree.
type Limits struct {
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`  // of all files together, holes counted
	Sparse  int64 `json:"sparse"` // of all files together whose holes the archive leaves out; 0: as Bytes
}

// DefaultLimits are far above any image that is meant to be a jail. Sparse files have a lower limit: a kilobyte of an
// archive can make a hole of a terabyte, and the digest of the file must cover its zeros, which takes minutes.
var DefaultLimits = Limits{Entries: 4_000_000, Bytes: 1 << 40, Sparse: 16 << 30}

// Result has the counts of what was unpacked and of what was left out.
type Result struct {
	Entries int64            `json:"entries"`
	Bytes   int64            `json:"bytes"`
	Sparse  int64            `json:"sparse,omitempty"`   // of Bytes, those of sparse files
	LeftOut map[string]int64 `json:"left_out,omitempty"` // number of entries by kind
}

// Kinds of Result.LeftOut.
const (
	leftDevices    = "device nodes"
	leftSetuid     = "set-ID bits"
	leftAttributes = "extended attributes"
	leftCapability = "file capabilities"
	leftTrailing   = "bytes after the end of the archive"
)

// Add adds the counts of another layer.
func (r *Result) Add(more Result) {
	r.Entries += more.Entries
	r.Bytes += more.Bytes
	r.Sparse += more.Sparse
	for kind, count := range more.LeftOut {
		r.leaveOut(kind, count)
	}
}

// leaveOut counts what is left out, which the record of the version shows.
func (r *Result) leaveOut(kind string, count int64) {
	if r.LeftOut == nil {
		r.LeftOut = map[string]int64{}
	}
	r.LeftOut[kind] += count
}

// Check fails if a value is not one of those above.
func (p Policy) Check() error {
	switch p.Devices {
	case DevicesDrop, DevicesRefuse, DevicesMake:
		return nil
	}
	return fmt.Errorf("device nodes: %q: write %s, %s or %s", p.Devices, DevicesDrop, DevicesRefuse, DevicesMake)
}

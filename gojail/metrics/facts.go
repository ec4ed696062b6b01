// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/quota"
)

// Facts is everything that is known of a node at one moment.
type Facts struct {
	node    string
	version string // of gojail
	time    time.Time

	jobs       []job
	templates  []template
	sandboxes  map[sandboxKind]int
	launches   map[string]state.Launches // by jail; "": steps that failed before their jail was known
	endsFailed int                       // number of jobs whose end failed

	VFs     []VF     // VFs of jobs
	HeldVFs []HeldVF // VFs of jobs, and VFs in quarantine

	Problems []error // errors that make the facts incomplete
}

// job is a job with sandboxes.
type job struct {
	id    string
	user  string    // name, or uid
	start time.Time // when its first sandbox was made; zero: unknown
	jails []jail
	gpus  []gpu

	usage        usage
	scratch      quota.Usage
	scratchKnown bool
}

// jail is a jail that a job uses.
type jail struct {
	name    string
	version string // of a jail of the store, else ""
}

// template is a jail that is assembled on the node.
type template struct {
	jail    string
	key     string
	version string // of a jail of the store, else ""
	start   time.Time
	current bool // whether the next job gets it
	judged  bool // whether current is known
}

// sandboxKind is the key by which sandboxes are counted.
type sandboxKind struct{ jail, state string }

// AddProblem adds an error of reading facts; nil is ignored.
func (f *Facts) AddProblem(err error) {
	if err != nil {
		f.Problems = append(f.Problems, err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/inventory"
	"github.com/gojail/gojail/netsetup/link"
)

// Site is a node and its configuration.
type Site struct {
	Config   *config.Config
	Cluster  string          // ClusterName of slurm.conf
	State    string          // "/run/gojail/NODE/net": a directory of root's alone, made if only its last part is missing
	Roots    inventory.Roots // Sys is a sysfs of the node's own network namespace
	Host     int             // descriptor of the node's own network namespace
	Queue    string          // directory of what UFM has not taken yet; outlives a reboot: "/var/lib/gojail/NODE/ufm"
	hardware hardware        // the zero value is real VFs
	limits   limits          // the zero value is what a node needs
	// stepHook is called before each step of a VF (done false), after it, and after each step
	// that was undone. An error fails the step. nil: no call.
	stepHook func(pci, step string, done bool) error
}

// limits are how long Attach, Release and Sweep wait for others; zero is the default.
type limits struct {
	ufm   time.Duration // UFM, at the start and at the end of a job each: 5 s
	home  time.Duration // a VF's return from a namespace that is gone, which the kernel takes apart in its own time: 10 s
	sweep time.Duration // each job, each pool, and UFM in Sweep: one whose server hangs must not hold up the others: 30 s
}

func (s *Site) ufmTime() time.Duration   { return cmp.Or(s.limits.ufm, 5*time.Second) }
func (s *Site) homeTime() time.Duration  { return cmp.Or(s.limits.home, 10*time.Second) }
func (s *Site) sweepTime() time.Duration { return cmp.Or(s.limits.sweep, 30*time.Second) }

func (s *Site) onStep(pci, step string, done bool) error {
	if s.stepHook == nil {
		return nil
	}
	return s.stepHook(pci, step, done)
}

// Job is who gets VFs: a network namespace of a job of Slurm.
type Job struct {
	ID      string   // up to 64 letters, digits and ._+-; a job with two namespaces has two
	Netns   int      // descriptor of its network namespace
	Label   string   // of the rails; "": the default ones
	Devices []string // PCI addresses of the VFs that Slurm gave by GRES; nil: no GRES
	GPUs    []string // PCI addresses
}

// Network is what a job has got.
type Network struct {
	Job     string            `json:"job"`
	Control *ControlNet       `json:"control,omitempty"`
	Rails   []RailNet         `json:"rails"`
	Files   []link.CharDevice `json:"files,omitempty"` // below /dev, of its RDMA devices
	Env     []string          `json:"env"`             // "NAME=value" for its tasks
}

// ControlNet is the interface with a job's default route.
type ControlNet struct {
	Name      string       `json:"name"` // "ctl0"
	Addresses []netip.Addr `json:"addresses"`
}

// RailNet is a job's interface on one rail.
type RailNet struct {
	Rail      string         `json:"rail"`
	Name      string         `json:"name"` // "net1"
	PCI       string         `json:"pci"`
	PF        string         `json:"pf"` // its name
	VF        int            `json:"vf"` // number
	MAC       string         `json:"mac"`
	MTU       int            `json:"mtu"` // bytes
	Addresses []netip.Prefix `json:"addresses"`
	Gateways  []netip.Addr   `json:"gateways,omitempty"`
	Table     int            `json:"table"`
	RDMA      string         `json:"rdma,omitempty"` // "mlx5_3"
	GID       *int           `json:"gid,omitempty"`  // index of the first address in the table of RoCE v2 GIDs
}

// Swept is what Sweep has done.
type Swept struct {
	Released  []string `json:"released"`  // jobs
	Addresses []string `json:"addresses"` // leases of jobs that are gone
	Kept      []Kept   `json:"kept"`
	Problems  []string `json:"problems,omitempty"` // one line each
}

// Kept is a VF, or a job's record, that Sweep left.
type Kept struct {
	PCI string `json:"pci,omitempty"`
	Job string `json:"job"`
	Why string `json:"why"`
}

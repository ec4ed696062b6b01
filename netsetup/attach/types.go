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

// Site is a node with its configuration.
type Site struct {
	Config  *config.Config
	Cluster string // ClusterName of slurm.conf
	// "/run/gojail/NODE/net": directory with access for root only. Its last part is created if it is missing, no other.
	State string
	Roots inventory.Roots // roots of the inventory; Sys is a sysfs of the node's own network namespace
	Host  int             // descriptor of the node's own network namespace
	// directory of calls that UFM has not confirmed, which survives a reboot: "/var/lib/gojail/NODE/ufm"
	Queue    string
	hardware hardware // operations on VFs; zero value: real VFs
	limits   limits   // timeouts; zero value: the defaults
	// stepHook is called before each step of a VF (done is false), after it, and after each
	// step that was undone. An error fails the step. nil: no call.
	stepHook func(pci, step string, done bool) error
}

// limits are the timeouts of Attach, Release and Sweep for other components; zero stands for the default.
type limits struct {
	ufm time.Duration // for UFM, at the start and at the end of a job; default 5 s
	// for the return of a VF from a namespace that is gone, which the kernel removes asynchronously; default 10 s
	home time.Duration
	// for each job, each pool, and UFM in Sweep, so that a server that hangs does not delay the others; default 30 s
	sweep time.Duration
}

func (s *Site) ufmTimeout() time.Duration   { return cmp.Or(s.limits.ufm, 5*time.Second) }
func (s *Site) homeTimeout() time.Duration  { return cmp.Or(s.limits.home, 10*time.Second) }
func (s *Site) sweepTimeout() time.Duration { return cmp.Or(s.limits.sweep, 30*time.Second) }

// onStep calls the hook of tests, which fail or kill an attach at each step.
func (s *Site) onStep(pci, step string, done bool) error {
	if s.stepHook == nil {
		return nil
	}
	return s.stepHook(pci, step, done)
}

// Job is a job of Slurm that gets VFs, with its network namespace.
type Job struct {
	ID      string   // up to 64 letters, digits and ._+-; a job with two network namespaces has two IDs
	Netns   int      // descriptor of its network namespace
	Label   string   // label of the rails; "": the default rails
	Devices []string // PCI addresses of the VFs that Slurm allocated by GRES; nil: no GRES
	GPUs    []string // PCI addresses of the job's GPUs
}

// Network is the network of a job.
type Network struct {
	Job     string            `json:"job"`
	Control *ControlNet       `json:"control,omitempty"`
	Rails   []RailNet         `json:"rails"`
	Files   []link.CharDevice `json:"files,omitempty"` // device nodes of its RDMA devices, below /dev
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
	Name      string         `json:"name"` // "net1"; "": RDMA devices alone
	PCI       string         `json:"pci"`
	PF        string         `json:"pf"` // name of the PF
	VF        int            `json:"vf"` // number; -1: a whole card
	MAC       string         `json:"mac"`
	MTU       int            `json:"mtu"` // bytes
	Addresses []netip.Prefix `json:"addresses"`
	Gateways  []netip.Addr   `json:"gateways,omitempty"`
	Table     int            `json:"table"`
	RDMA      string         `json:"rdma,omitempty"`      // "mlx5_3"
	RDMAMore  []string       `json:"rdma_more,omitempty"` // further RDMA devices of the function
	GID       *int           `json:"gid,omitempty"`       // index of the first address in the table of RoCE v2 GIDs
}

// ListRDMA returns the names of the rail's RDMA devices.
func (r *RailNet) ListRDMA() []string {
	if r.RDMA == "" {
		return nil
	}
	return append([]string{r.RDMA}, r.RDMAMore...)
}

// Swept is the result of Sweep.
type Swept struct {
	Released  []string   `json:"released"`  // jobs that were released
	Addresses []string   `json:"addresses"` // released leases of jobs that have ended
	Leftovers []Leftover `json:"kept"`
	Problems  []string   `json:"problems,omitempty"` // one line each
}

// Leftover is a VF, or a job's record, that Sweep has not released.
type Leftover struct {
	PCI string `json:"pci,omitempty"`
	Job string `json:"job"`
	Why string `json:"why"`
}

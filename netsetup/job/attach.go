// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/refusal"
	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/gres"
)

// Request is a job's request for networks, with what Slurm allocated.
type Request struct {
	Job    string // the job's number
	Jail   string // value of --jail
	Label  string // value of --jail-net
	Holder int    // process whose network namespace and /dev are the job's
	NICs   string // numbers of the NICs that Slurm allocated
	// whether they are unknown: no step of the job has begun, and Slurm does not tell even the Prolog (gres_nic.c)
	NoNICs    bool
	GPUs      string // numbers of the GPUs that Slurm allocated
	GresTypes string // GresTypes of slurm.conf; without "nic" in it, users can set the variable of the NICs
	Env       string // path of the file for the variables of the job's tasks
	Counters  string // path of the file for the counters of the job's rails
}

// Attach attaches the rails to the job's network namespace, creates the nodes of their RDMA
// devices in its /dev, and writes the environment variables for its tasks.
func (n Node) Attach(ctx context.Context, r Request) error {
	site, end, err := n.openSite()
	defer end()
	if site.Host >= 0 && errors.Is(err, fs.ErrNotExist) {
		err = refusal.Errorf("this node has no %s, hence no rails; leave the option out, or ask your administrator",
			n.Config)
	}
	if err != nil {
		return fmt.Errorf("--jail-net=%s: %w", r.Label, err)
	}
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", r.Holder))
	if err != nil {
		return fmt.Errorf("the job's sandbox ended while its network was attached: %w", err)
	}
	defer namespace.Close()
	job := attach.Job{ID: r.Job, Netns: int(namespace.Fd()), Label: r.Label}
	if err := n.addGres(&job, r, site); err != nil {
		return err
	}
	got, err := attach.Attach(ctx, site, job)
	if err != nil {
		return err
	}
	if err := makeDeviceNodes(r.Holder, got); err != nil {
		return err
	}
	// An error is ignored: without the counters, only the traffic of the job stays unknown.
	_ = noteCounters(r.Counters, namespace, got.Rails)
	if err := os.WriteFile(r.Env, []byte(strings.Join(got.Env, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("cannot write %s: %w; check the free space of the state directory", r.Env, err)
	}
	return nil
}

// addGres adds the devices that Slurm allocated to the job. If no plugin of Slurm sets the variables, users can set
// them. So NICs count only with GresTypes=nic, and then a job has no others. GPUs are only a preference.
func (n Node) addGres(job *attach.Job, r Request, site attach.Site) error {
	types := strings.FieldsFunc(r.GresTypes, func(c rune) bool { return c == ',' || c == ' ' })
	if r.GPUs == "" && !slices.Contains(types, "nic") {
		return nil
	}
	inv, err := site.ReadInventory()
	if err != nil {
		return err
	}
	for _, name := range types {
		switch name {
		case "nic":
			if r.NoNICs {
				return refusal.Errorf(
					"the NICs of job %[1]s are known to its steps only, and none has begun on this node; "+
						"start one here, and connect again: "+
						"srun --jobid=%[1]s --overlap -N1 -n1 -w %[2]s --jail=%[3]s --jail-net=%[4]s true", r.Job,
					n.Name,
					r.Jail, r.Label)
			}
			job.Devices = []string{}
			devices, err := gres.ListDevices(site.Config, inv)
			if err != nil {
				return err
			}
			given, err := gres.FindGiven(r.NICs, devices)
			if err != nil {
				return err
			}
			for _, d := range given {
				job.Devices = append(job.Devices, d.VF.PCI)
			}
		case "gpu":
			given, _ := gres.FindGivenGPUs(r.GPUs, inv) // a different numbering is no error
			for _, g := range given {
				job.GPUs = append(job.GPUs, g.PCI)
			}
		}
	}
	return nil
}

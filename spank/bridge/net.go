// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/mount"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/site"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/internal/deadline"
	"github.com/gojail/gojail/internal/trusted"
	netconfig "github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/job"
)

// networkPath returns the path of network.toml, beside gojail.toml.
func (r *request) networkPath() string {
	return filepath.Join(filepath.Dir(r.words["config"]), filepath.Base(netconfig.DefaultPath))
}

// readNetworks returns the part of network.toml for the site file. An invalid network.toml fails every step,
// since it may require networks by default.
func (r *request) readNetworks() (n site.Networks, err error) {
	if n.Identity, err = trusted.Identify(r.networkPath()); n.Identity == nil || err != nil {
		return n, err
	}
	c, err := netconfig.Load(r.networkPath(), r.words["node"])
	if err != nil {
		return n, err
	}
	n.Default = c.Default
	return n, nil
}

// newNode returns this node in the form that package job needs.
func (r *request) newNode(c *config.Config) job.Node {
	return job.Node{
		Config: r.networkPath(), Name: r.words["node"], Cluster: node.SlurmValue(c, "ClusterName"),
		State: r.words["state"], Scratch: c.Scratch,
	}
}

// attachNet attaches the job's rails to the network namespace of the holder.
func (r *request) attachNet() ([]mount.Tree, error) {
	c, err := r.loadConfig()
	if err != nil {
		return nil, fmt.Errorf("--jail-net=%s: %w", r.words["net"], err)
	}
	holder, err := r.findHolder()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithDeadline(context.Background(), r.lastMoment())
	defer cancel()
	return nil, r.newNode(c).Attach(ctx, job.Request{
		Job: r.words["job"], Jail: r.words["jail"], Label: r.words["net"], Holder: holder,
		NICs: r.words["nics"], NoNICs: r.words["nics"] == contract.NICsUnknown, GPUs: r.words["gpus"],
		GresTypes: node.SlurmValue(c, "GresTypes"),
		Env:       filepath.Join(r.words["state"], contract.JobsDir, r.words["job"], contract.NetEnvFile),
		Counters:  filepath.Join(r.words["state"], contract.JobsDir, r.words["job"], contract.NetCountersFile),
	})
}

// showNetFiles shows a further sandbox of the job the devices of its rails.
func (r *request) showNetFiles() ([]mount.Tree, error) {
	holder, err := r.findHolder()
	if err != nil {
		return nil, err
	}
	return nil, job.ShowFiles(r.words["state"], r.words["job"], holder)
}

func (r *request) findHolder() (int, error) {
	holder, err := strconv.Atoi(r.words["holder"])
	if err != nil {
		return 0, fmt.Errorf("%s: holder=%q is not a process", r.verb, r.words["holder"])
	}
	return holder, nil
}

// countersPatience is the time for the counters of a job's rails: a card whose firmware hangs must not keep the VFs
// from being released.
const countersPatience = time.Second

// describeNetUse returns what the job's rails carried, as fields of the journal; "" if that is unknown or the job had
// none. It must come before releaseNet.
func (r *request) describeNetUse(s *state.State, id string) string {
	if !job.HasNetwork(r.words["state"], id) {
		return ""
	}
	text, _ := deadline.CallFor(countersPatience, func() string {
		namespace, err := s.OpenNetwork(id)
		if err != nil {
			return ""
		}
		defer namespace.Close()
		text, err := job.DescribeUse(r.words["state"], id, filepath.Join(s.JobDir(id), contract.NetCountersFile),
			namespace)
		if err != nil {
			return ""
		}
		return text
	})
	return text
}

// releaseNet releases a job's VFs. What fails here is tried again at the ends of later jobs, and by the sweep.
func (r *request) releaseNet(id string, until time.Time) error {
	if !job.HasNetwork(r.words["state"], id) {
		return nil
	}
	c, err := r.loadConfig()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	return r.newNode(c).Release(ctx, id)
}

// sweepNet releases the VFs of jobs that ended.
func (r *request) sweepNet(c *config.Config, alive func(job string) bool) error {
	ctx, cancel := context.WithDeadline(context.Background(), r.lastMoment())
	defer cancel()
	_, err := r.newNode(c).Sweep(ctx, alive)
	return err
}

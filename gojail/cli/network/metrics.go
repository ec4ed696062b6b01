// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/metrics"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/netsetup/attach"
	"github.com/gojail/gojail/netsetup/job"
)

// AddMetrics adds the VFs of jobs with their counters, and those in quarantine.
func AddMetrics(node *cmdline.Node, f *metrics.Facts, s *state.State) {
	n := &localNode{node}
	if _, err := os.Lstat(n.networkState()); os.IsNotExist(err) {
		return // no job ever had a VF
	}
	held, err := attach.ListHeld(n.networkState())
	f.AddProblem(err)
	for _, vf := range held {
		f.HeldVFs = append(f.HeldVFs, metrics.HeldVF{PCI: vf.PCI, Rail: vf.Rail, Quarantined: vf.Quarantined != ""})
	}
	networks, problems := attach.ListNetworks(n.networkState())
	f.Problems = append(f.Problems, problems...)
	for _, network := range networks {
		f.AddProblem(addNetwork(f, s, network))
	}
}

// addNetwork adds the VFs of one job. Without counters it is still known which VFs the job has.
func addNetwork(f *metrics.Facts, s *state.State, network *attach.Network) error {
	var counters map[string]job.Counters
	namespace, err := s.OpenNetwork(network.Job)
	if err == nil {
		counters, err = job.ReadCounters(filepath.Join(s.JobDir(network.Job), contract.NetCountersFile), namespace,
			network.Rails)
		namespace.Close()
	}
	for _, r := range network.Rails {
		number := ""
		if r.VF >= 0 { // no whole card
			number = strconv.Itoa(r.VF)
		}
		f.VFs = append(f.VFs, metrics.VF{Job: network.Job, Rail: r.Rail, PCI: r.PCI, Netdev: r.Name, RDMA: r.RDMA,
			PF: r.PF, Number: number, Interface: counters[r.Rail].Interface, Ports: counters[r.Rail].Ports})
	}
	if err != nil {
		return fmt.Errorf("cannot read the counters of job %s: %w", network.Job, err)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// resultOK is the result of a rail without problems.
const resultOK = "ok"

// Result is the result of a check of one rail. The field Result is "ok", or the problem in a
// word or two: "down", "no address", "no gateway", or "3/7" for 3 of 7 peers.
type Result struct {
	Rail
	Result   string   `json:"result"`
	Peers    int      `json:"peers"`    // number of peers that were asked
	Silent   []string `json:"silent"`   // nodes that did not answer
	Problems []string `json:"problems"` // one line each

	mutex sync.Mutex
}

// addProblem adds a problem; the first one determines the result.
func (r *Result) addProblem(result, format string, args ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.Result == resultOK {
		r.Result = result
	}
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// Check probes gateways and peers on all rails at once, at most until ctx ends. If step is
// nil, there are no peers.
func Check(ctx context.Context, v *View, step *Step) []*Result {
	var results []*Result
	var endpoints []*endpoint
	of := map[*endpoint]*Result{}
	var gateways sync.WaitGroup
	for i := range v.Rails {
		r := &Result{Rail: v.Rails[i], Result: resultOK, Silent: []string{}, Problems: []string{}}
		results = append(results, r)
		if !r.checkLocal() {
			continue
		}
		for _, gateway := range r.Gateways {
			gateways.Go(func() { r.checkGateway(ctx, gateway) })
		}
		if step == nil || step.Nodes.Len() < 2 {
			continue
		}
		r.Peers = step.Nodes.Len() - 1
		for _, own := range r.pickOnePerFamily() {
			e, err := openEndpoint(&r.Rail, own, step.derivePort(), step.Nodes.Len())
			if err != nil {
				r.addProblem("no socket", "%v", err)
				continue
			}
			endpoints, of[e] = append(endpoints, e), r
		}
	}
	if step != nil && len(endpoints) > 0 {
		meetPeers(ctx, *step, endpoints)
	}
	gateways.Wait()
	for _, e := range endpoints {
		of[e].reportPeers(e, step)
	}
	return results
}

// checkLocal checks the properties that need no network, and reports whether the network can
// be probed.
func (r *Result) checkLocal() bool {
	if r.State != Up {
		r.addProblem(r.State, "%s is %s", r.Interface, r.State)
		return false
	}
	missing := slices.DeleteFunc(slices.Clone(r.device), func(d string) bool { return slices.Contains(r.RDMA, d) })
	switch {
	case len(missing) > 0:
		r.addProblem("no RDMA", "the RDMA device %s is missing", strings.Join(missing, ", "))
	case len(r.device) > 0 && !r.active:
		r.addProblem("RDMA down", "port 1 of the RDMA device %s is not active", strings.Join(r.device, " or "))
	}
	if r.Interface == "" {
		return false // it has RDMA devices alone
	}
	lacks := r.findMissing()
	for _, a := range lacks {
		r.addProblem("no address", "%s does not have the address %s", r.Interface, a)
	}
	return len(lacks) == 0
}

func (r *Result) pickOnePerFamily() []netip.Prefix {
	var four, six []netip.Prefix
	for _, a := range r.Addresses {
		if a.Addr().Is4() {
			four = append(four, a)
		} else {
			six = append(six, a)
		}
	}
	return append(four[:min(1, len(four))], six[:min(1, len(six))]...)
}

func (r *Result) checkGateway(ctx context.Context, gateway netip.Addr) {
	for _, own := range r.pickOnePerFamily() {
		if own.Addr().Is4() == gateway.Is4() {
			if err := probeGateway(ctx, r.index, own.Addr(), gateway); err != nil {
				r.addProblem("no gateway", "%v", err)
			}
		}
	}
}

// reportPeers adds the nodes that did not answer, for both address families if they differ.
func (r *Result) reportPeers(e *endpoint, step *Step) {
	for _, node := range slices.Sorted(maps.Keys(e.failed)) {
		r.addProblem("no route", "cannot send from %s: %v", e.own.Addr(), e.failed[node])
		break // the first error is enough
	}
	var silent []string
	for node, answered := range e.answered {
		if !answered {
			silent = append(silent, step.nodeName(node))
		}
	}
	if len(silent) == 0 {
		return
	}
	r.addProblem(fmt.Sprintf("%d/%d", r.Peers-len(silent), r.Peers), "no answer to %s from %s", e.own.Addr(),
		strings.Join(silent, ","))
	if len(silent) > len(r.Silent) {
		r.Silent = silent
	}
}

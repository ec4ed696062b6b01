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

// resultOK is the result of a rail where all is well.
const resultOK = "ok"

// Result is what a check found about one rail. State is OK, or what is wrong in
// a word or two: "down", "no address", "no gateway", or "3/7" for 3 of 7 peers.
type Result struct {
	Rail
	Result   string   `json:"result"`
	Peers    int      `json:"peers"`    // that were asked
	Silent   []string `json:"silent"`   // nodes that did not answer
	Problems []string `json:"problems"` // one line each

	mutex sync.Mutex
}

// fail keeps the first as the result.
func (r *Result) fail(result, format string, args ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.Result == resultOK {
		r.Result = result
	}
	r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
}

// Check asks gateways and peers on all rails at once, until ctx ends at the
// latest. step nil: there are no peers.
func Check(ctx context.Context, v *View, step *Step) []*Result {
	var results []*Result
	var endpoints []*endpoint
	of := map[*endpoint]*Result{}
	var gateways sync.WaitGroup
	for i := range v.Rails {
		r := &Result{Rail: v.Rails[i], Result: resultOK, Silent: []string{}, Problems: []string{}}
		results = append(results, r)
		if !r.local() {
			continue
		}
		for _, gateway := range r.Gateways {
			gateways.Go(func() { r.gateway(ctx, gateway) })
		}
		if step == nil || step.Nodes.Len() < 2 {
			continue
		}
		r.Peers = step.Nodes.Len() - 1
		for _, own := range r.onePerFamily() {
			e, err := open(&r.Rail, own, step.port(), step.Nodes.Len())
			if err != nil {
				r.fail("no socket", "%v", err)
				continue
			}
			endpoints, of[e] = append(endpoints, e), r
		}
	}
	if step != nil && len(endpoints) > 0 {
		meet(ctx, *step, endpoints)
	}
	gateways.Wait()
	for _, e := range endpoints {
		of[e].peers(e, step)
	}
	return results
}

// local looks at what needs no network; false: there is no use in asking.
func (r *Result) local() bool {
	if r.State != Up {
		r.fail(r.State, "%s is %s", r.Interface, r.State)
		return false
	}
	switch {
	case r.device == "":
	case !slices.Contains(r.RDMA, r.device):
		r.fail("no RDMA", "the RDMA device %s is not there", r.device)
	case !r.active:
		r.fail("RDMA down", "port 1 of the RDMA device %s is not active", r.device)
	}
	lacks := r.lacks()
	for _, a := range lacks {
		r.fail("no address", "%s does not have the address %s", r.Interface, a)
	}
	return len(lacks) == 0
}

func (r *Result) onePerFamily() []netip.Prefix {
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

func (r *Result) gateway(ctx context.Context, gateway netip.Addr) {
	for _, own := range r.onePerFamily() {
		if own.Addr().Is4() == gateway.Is4() {
			if err := gatewayAnswers(ctx, r.index, own.Addr(), gateway); err != nil {
				r.fail("no gateway", "%v", err)
			}
		}
	}
}

// peers says which nodes are missing; of both families where they differ.
func (r *Result) peers(e *endpoint, step *Step) {
	for _, node := range slices.Sorted(maps.Keys(e.failed)) {
		r.fail("no route", "cannot send from %s: %v", e.own.Addr(), e.failed[node])
		break // one tells enough
	}
	var silent []string
	for node, answered := range e.answered {
		if !answered {
			silent = append(silent, step.name(node))
		}
	}
	if len(silent) == 0 {
		return
	}
	r.fail(fmt.Sprintf("%d/%d", r.Peers-len(silent), r.Peers), "from %s no answer of %s", e.own.Addr(), strings.Join(silent, ","))
	if len(silent) > len(r.Silent) {
		r.Silent = silent
	}
}

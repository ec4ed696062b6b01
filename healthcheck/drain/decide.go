// SPDX-License-Identifier: Apache-2.0

// Package drain turns findings into drains and undrains of the node in Slurm.
//
// The history (the consecutive bad or good runs of each check) first determines the request; if
// the request is not new, Slurm is not queried at all. Otherwise the controller is queried for
// the node's state and reason, and planDecision, which is pure, determines the action. An
// answer that cannot be parsed or comes late leads to no action.
//
// A drain is undone only if this node's record of it, the reason with its id, and the user and time of the reason are
// all unchanged: a person who sets another reason has taken over the node. The one exception is Slurm's own "Kill task
// failed" in the place of a drain for storage that does not answer (planWithUnkilled). The record survives a reboot,
// the history does not. Where /var does not survive it either, the record is made anew if Slurm shows that the drain is
// this program's (recoverRecord).
//
// The package needs Slurm 22.05 or later: scontrol show node, scontrol update State=DRAIN and
// UNDRAIN.
package drain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/run"
)

// Record is a drain by this program.
type Record struct {
	ID     string `json:"id"`
	Check  string `json:"check"`  // the check named in the reason
	Reason string `json:"reason"` // as passed to Slurm
	// User and time of the reason as shown by Slurm; empty until Slurm has shown them. They
	// distinguish this program's reason from the same text set by a person.
	Stamp string `json:"stamp,omitempty"`
	// Whether the drain is for storage that did not answer, which also explains that Slurm could not kill a process.
	Silent bool `json:"silent,omitempty"`
	// The record that this one replaces, until Slurm has shown the new reason.
	Before *Record `json:"before,omitempty"`
}

// Goal is the state of the node that the checks require.
type Goal int

// The goals. Hold keeps an existing drain.
const (
	Nothing Goal = iota
	ToDrain
	ToHold
	ToRename // the drain stays, but for another check than the reason names
	ToUndrain
)

// Request is the goal of a run, with the check that causes it.
type Request struct {
	Goal  Goal
	Check string
	Text  string
	// Whether the check's failure is storage that does not answer.
	Silent bool
	// Whether the check counts as bad, but its last run was good: a drain stays, and none begins.
	mending bool
}

// planRequest returns the goal of the checks, given the existing drain (nil: none).
func (h *History) planRequest(results []run.Result, record *Record) Request {
	var bad []string
	clear := true // no check is about to become bad
	for _, r := range results {
		past := h.Checks[r.Check.Name]
		if r.Check.Severity != check.Drain {
			continue
		}
		if past.Counts {
			bad = append(bad, r.Check.Name)
		}
		clear = clear && past.Bad == 0
	}
	switch {
	case len(bad) > 0 && record == nil:
		if i := slices.IndexFunc(bad, func(name string) bool { return !h.isMending(name) }); i >= 0 {
			return h.newRequest(ToDrain, bad[i])
		}
	case len(bad) > 0 && slices.Contains(bad, record.Check):
		return h.newRequest(ToHold, record.Check)
	case len(bad) > 0:
		return h.newRequest(ToRename, bad[0])
	case record != nil && clear && h.isMended(results, record.Check):
		return Request{Goal: ToUndrain, Check: record.Check}
	}
	return Request{}
}

// newRequest returns the request that a bad check causes.
func (h *History) newRequest(goal Goal, name string) Request {
	return Request{goal, name, h.Checks[name].Text, h.Checks[name].Silent, h.isMending(name)}
}

// isMending reports whether the last run of a bad check was good.
func (h *History) isMending(name string) bool { return h.Checks[name].Good > 0 }

// isMended reports whether a check was good often enough since it was bad; after a boot the
// count starts again. A check that is switched off counts as mended.
func (h *History) isMended(results []run.Result, name string) bool {
	for _, r := range results {
		if r.Check.Name == name && r.Check.Severity == check.Drain {
			past := h.Checks[name]
			return past.Good >= r.Check.GoodRuns && past.Good > 0
		}
	}
	return true
}

// mustAsk reports whether the request requires a query of Slurm. healthy is the controller's
// opinion of the node when it started this run (SLURM_NODE_IS_HEALTHY of Slurm 26.05.2 and later):
// "yes", "no" or "".
func (h *History) mustAsk(want Request, record *Record, now time.Time, again time.Duration, healthy string) bool {
	if want.Goal == Nothing {
		return false
	}
	unconfirmed := record != nil && record.Stamp == ""
	if h.Asked.For != want.String() || unconfirmed {
		return true
	}
	switch {
	case healthy == "no" && want.Goal != ToUndrain:
		return false // the node is drained, by this program or somebody else
	case healthy == "yes" && record != nil:
		return true // a person has resumed the node
	}
	age := now.Sub(time.Unix(h.Asked.At, 0))
	return age < 0 || age >= again
}

func (r Request) String() string {
	return [...]string{"nothing", "drain", "hold", "rename", "undrain"}[r.Goal] + " " + r.Check
}

// Action is an operation on the node or on its record.
type Action int

// The actions. Forget and Confirm change the record only.
const (
	None Action = iota
	Confirm
	Forget
	Drain
	Undrain
)

func (a Action) String() string {
	return [...]string{"none", "confirm", "forget", "drain", "undrain"}[a]
}

// Decision is an action with its reason: for Drain the reason to pass to Slurm, otherwise a
// text for the log why nothing is changed.
type Decision struct {
	Action Action
	Why    string
}

// planDecision returns the action, given the state of the node in Slurm and what findUnkilled returned, if it was
// called. It is pure.
func planDecision(want Request, record *Record, node *nodeState, id, unkilled string) Decision {
	ours := record.isSetOn(node)
	drained := node.hasState("DRAIN")
	switch {
	case want.Goal == Nothing:
		return Decision{}
	case drained && record.explainsDrain(node):
		return planWithUnkilled(want, record, node, unkilled)
	case drained && !ours:
		return yieldNode(record, "it is already drained: "+node.Reason)
	case want.Goal == ToUndrain:
		return planUndrain(node, drained)
	case drained && want.Goal == ToRename:
		return Decision{Drain, want.formatReason(id, "")}
	case drained && node.Reason != record.Reason: // the new reason was never set
		return Decision{Drain, want.formatReason(id, "")}
	case drained:
		return Decision{Confirm, ""}
	case want.mending:
		return yieldNode(record, "the node was resumed, and check "+want.Check+" is good again")
	case node.findUntouchableState() != "":
		return Decision{None, "the node is " + node.findUntouchableState()}
	case node.Reason != "" && !isOurs(node.Reason) && node.hasState("DOWN", "FAIL"):
		return yieldNode(record, "it is already down: "+node.Reason)
	}
	// A node that takes jobs may have a reason that Slurm did not clear, or one set by a
	// person, which the new reason includes.
	before := ""
	if !isOurs(node.Reason) {
		before = node.Reason
	}
	return Decision{Drain, want.formatReason(id, before)}
}

// yieldNode returns the decision to leave a node to the person who set its reason.
func yieldNode(record *Record, why string) Decision {
	if record != nil {
		return Decision{Forget, why}
	}
	return Decision{None, why}
}

// planUndrain returns the action for a node whose drain should end.
func planUndrain(node *nodeState, drained bool) Decision {
	switch {
	case !drained:
		return Decision{Forget, "the node is no longer drained"}
	case node.findUntouchableState() != "" || node.hasState("DOWN", "FAIL"):
		return Decision{None, "the node is " + strings.Join(node.State, "+")}
	}
	return Decision{Undrain, ""}
}

const (
	// Other tools for Slurm mark drains that are not caused by users with [node_problem]. The
	// mark comes last, since sinfo -R shows only the first 20 characters of a reason, which
	// name the check.
	mark              = " [node_problem] gojail"
	idStart           = " (id "
	wasStart          = "; was: "
	previousReasonMax = 100 // maximum length in bytes of an included earlier reason
)

// isOurs reports whether a reason has the form that this program writes.
func isOurs(reason string) bool {
	before, _, hasID := strings.Cut(reason, idStart)
	check, _, _ := strings.Cut(before, ": ")
	return hasID && strings.HasSuffix(before, mark) && check != "" && !strings.Contains(check, " ")
}

// formatReason returns the reason for Slurm.
func (r Request) formatReason(id, before string) string {
	text := strings.ReplaceAll(r.Text, idStart, " (") // otherwise isOurs does not find the mark
	reason := fmt.Sprintf("%s: %s%s%s%s)", r.Check, text, mark, idStart, id)
	if before != "" {
		reason += wasStart + run.SanitizeText(before, previousReasonMax)
	}
	return reason
}

// isSetOn reports whether the node has the reason of the record.
func (r *Record) isSetOn(node *nodeState) bool {
	switch {
	case r == nil:
		return false
	case node.Reason != r.Reason:
		return r.Before.isSetOn(node)
	case r.Stamp == "": // the writer was killed before it could read the stamp
		return strings.HasPrefix(node.stamp, "root@")
	}
	return node.stamp == r.Stamp
}

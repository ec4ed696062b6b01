// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/run"
)

// Record is a drain of ours.
type Record struct {
	ID     string `json:"id"`
	Check  string `json:"check"`  // that the reason names
	Reason string `json:"reason"` // as Slurm was given it
	// Stamp is who set the reason and when, as Slurm shows it; empty until that was
	// seen. Slurm's own user and time, so that the same words of a person are theirs.
	Stamp string `json:"stamp,omitempty"`
	// Before is what this one is to replace, until it was seen that it did.
	Before *Record `json:"before,omitempty"`
}

// Wish is what the checks want of the node.
type Wish int

// The wishes. Hold is a drain that is to stay.
const (
	Nothing Wish = iota
	ToDrain
	ToHold
	ToRename // the drain stays, for another check than the reason names
	ToUndrain
)

// Want is what a run wants, for which check.
type Want struct {
	Wish  Wish
	Check string
	Text  string
}

// wants is what the checks want, given the drain that stands; nil is none.
func (h *History) wants(results []run.Result, record *Record) Want {
	var bad []string
	clear := true // no check is on its way to being bad
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
		return Want{ToDrain, bad[0], h.Checks[bad[0]].Text}
	case len(bad) > 0 && slices.Contains(bad, record.Check):
		return Want{ToHold, record.Check, h.Checks[record.Check].Text}
	case len(bad) > 0:
		return Want{ToRename, bad[0], h.Checks[bad[0]].Text}
	case record != nil && clear && h.mended(results, record.Check):
		return Want{ToUndrain, record.Check, ""}
	}
	return Want{}
}

// mended tells whether a check was good often enough since it was bad; after a
// boot that is counted anew. One that is switched off by now is.
func (h *History) mended(results []run.Result, name string) bool {
	for _, r := range results {
		if r.Check.Name == name && r.Check.Severity == check.Drain {
			past := h.Checks[name]
			return past.Good >= r.Check.Good && past.Good > 0
		}
	}
	return true
}

// ask tells whether Slurm has to be asked for that. healthy is what the controller
// had to say of the node when it sent for this run (SLURM_NODE_IS_HEALTHY, Slurm
// 26.11 and later): "yes", "no" or "".
func (h *History) ask(want Want, record *Record, now time.Time, again time.Duration, healthy string) bool {
	if want.Wish == Nothing {
		return false
	}
	unconfirmed := record != nil && record.Stamp == ""
	if h.Asked.For != want.String() || unconfirmed {
		return true
	}
	switch {
	case healthy == "no" && want.Wish != ToUndrain:
		return false // it is drained, by whomever
	case healthy == "yes" && record != nil:
		return true // a person has resumed it
	}
	age := now.Sub(time.Unix(h.Asked.At, 0))
	return age < 0 || age >= again
}

func (w Want) String() string {
	return [...]string{"nothing", "drain", "hold", "rename", "undrain"}[w.Wish] + " " + w.Check
}

// Action is what is done.
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

// Decision is an action with its reason: for Drain the one to give to Slurm, else a
// word to the log on why nothing is written.
type Decision struct {
	Action Action
	Why    string
}

// decide is what to do, given what Slurm said of the node.
func decide(want Want, record *Record, node *nodeState, id string) Decision {
	ours := record.set(node)
	drained := node.is("DRAIN")
	switch {
	case want.Wish == Nothing:
		return Decision{}
	case drained && !ours:
		return yield(record, "it is drained already: "+node.Reason)
	case want.Wish == ToUndrain:
		return undrain(node, drained)
	case drained && want.Wish == ToRename:
		return Decision{Drain, want.reason(id, "")}
	case drained && node.Reason != record.Reason: // another one was to be there, but never came
		return Decision{Drain, want.reason(id, "")}
	case drained:
		return Decision{Confirm, ""}
	case node.busyWithItself() != "":
		return Decision{None, "the node is " + node.busyWithItself()}
	case node.Reason != "" && !isOurs(node.Reason) && node.is("DOWN", "FAIL"):
		return yield(record, "it is down already: "+node.Reason)
	}
	// A node that takes jobs may have a reason that Slurm forgot to clear, or one of
	// a person's, which is kept.
	before := ""
	if !isOurs(node.Reason) {
		before = node.Reason
	}
	return Decision{Drain, want.reason(id, before)}
}

// yield leaves a node to whoever gave it its reason.
func yield(record *Record, why string) Decision {
	if record != nil {
		return Decision{Forget, why}
	}
	return Decision{None, why}
}

func undrain(node *nodeState, drained bool) Decision {
	switch {
	case !drained:
		return Decision{Forget, "the node is not drained any more"}
	case node.busyWithItself() != "" || node.is("DOWN", "FAIL"):
		return Decision{None, "the node is " + strings.Join(node.State, "+")}
	}
	return Decision{Undrain, ""}
}

const (
	// [node_problem] is how other tools for Slurm mark drains that are no user's fault. It
	// comes last: sinfo -R shows the first 20 characters of a reason, which are the check's.
	mark    = " [node_problem] gojail"
	markOld = "[node_problem] gojail: " // where it came first; nodes may still be drained so
	idStart = " (id "
	wasMax  = 100 // bytes of another reason
)

// isOurs reports whether a reason is of the form that this program writes, or once wrote.
func isOurs(reason string) bool {
	before, _, hasID := strings.Cut(reason, idStart)
	check, _, _ := strings.Cut(before, ": ")
	ours := strings.HasSuffix(before, mark) && check != "" && !strings.Contains(check, " ")
	return hasID && (ours || strings.HasPrefix(before, markOld))
}

// reason is the line for Slurm.
func (w Want) reason(id, before string) string {
	text := strings.ReplaceAll(w.Text, idStart, " (") // else the mark is not where isOurs looks
	reason := fmt.Sprintf("%s: %s%s%s%s)", w.Check, text, mark, idStart, id)
	if before != "" {
		reason += "; was: " + run.Plain(before, wasMax)
	}
	return reason
}

// set tells whether the reason that the node has is the one of the record.
func (r *Record) set(node *nodeState) bool {
	switch {
	case r == nil:
		return false
	case node.Reason != r.Reason:
		return r.Before.set(node)
	case r.Stamp == "": // its writer was killed before it could look
		return strings.HasPrefix(node.stamp, "root@")
	}
	return node.stamp == r.Stamp
}

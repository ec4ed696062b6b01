// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Step changes one setting from the found to the wanted value. If a step fails, the card's earlier steps are undone in
// reverse order: each restores the value that it found.
type Step struct {
	PF     string `json:"pf,omitempty"`   // PCI address of the card; "": the node
	Name   string `json:"name,omitempty"` // name of the card's interface
	What   string `json:"what"`           // "VFs", "VF 3 MAC"
	Found  string `json:"found"`          // "": does not exist yet
	Wanted string `json:"wanted"`
	Undo   string `json:"undo"` // value that a failure restores; "": nothing

	setting
	follows *Step // step whose need makes this one needed
	needed  bool
	fresh   bool // whether it concerns a VF that does not exist yet
}

// setting is a property that can be read and set as text.
type setting struct {
	what, wanted string
	undo         string                           // value to restore instead of the found one
	stays        bool                             // whether it is not undone
	makes        bool                             // whether it makes VFs, and removes the existing ones
	allowed      func(*Kernel) error              // fails if the change is not allowed; nil: always allowed
	get          func(*Kernel) (string, error)    // "": does not exist yet
	set          func(k *Kernel, to string) error // returns when the change has taken effect
	reached      func(found string) bool          // whether found is as wanted; nil: if equal to wanted
}

func (s *Step) isReached(found string) bool {
	if s.reached != nil {
		return s.reached(found)
	}
	return found == s.wanted
}

// String returns the step on one line.
func (s *Step) String() string {
	where := ""
	if s.PF != "" {
		where = s.Name + " (" + s.PF + "): "
	}
	return fmt.Sprintf("%s%s: %s -> %s", where, s.What, orDash(s.Found), s.Wanted)
}

// Observe reads the current settings, and drops the steps that are not needed. Without
// Observe, a plan has all steps, and Apply skips those that are not needed.
func (p *Plan) Observe(k *Kernel) error {
	var needed []*Step
	for _, s := range p.Steps {
		after := s.follows != nil && s.follows.needed
		s.fresh = after && (s.follows.fresh || s.follows.makes)
		if !s.fresh { // the current values belong to the old VFs
			found, err := s.get(k)
			if err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
			s.Found = found
			s.Undo = s.undoValue()
		}
		if s.needed = after || !s.isReached(s.Found); s.needed {
			needed = append(needed, s)
		}
	}
	p.Steps = needed
	return nil
}

func (s *Step) undoValue() string {
	switch {
	case s.stays:
		return ""
	case s.undo != "":
		return s.undo
	}
	return s.Found
}

// Render writes the plan for `gojail vf apply --dry-run`.
func (p *Plan) Render(w io.Writer) error {
	for _, warning := range p.Warnings {
		fmt.Fprintln(w, "warning:", warning)
	}
	if len(p.Steps) == 0 {
		_, err := fmt.Fprintln(w, p.ExplainIdle())
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PF\tWHAT\tFOUND\tWANTED\tON FAILURE")
	for _, s := range p.Steps {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", orDash(s.Name), s.What, orDash(s.Found), s.Wanted, orDash(s.Undo))
	}
	return table.Flush()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Step brings one setting from what was found to what is wanted. A step that
// fails takes the card's steps before it back, in reverse: each sets what it found.
type Step struct {
	PF     string `json:"pf,omitempty"`   // PCI address of the card; "": the whole node
	Name   string `json:"name,omitempty"` // its interface
	What   string `json:"what"`           // "VFs", "VF 3 MAC"
	Found  string `json:"found"`          // "": not there yet
	Wanted string `json:"wanted"`
	Undo   string `json:"undo"` // what a failure sets; "": nothing

	setting
	follows *Step // if that one is needed, this one is
	needed  bool
	fresh   bool // on a VF that is not there yet
}

// setting is something that can be read and set as text.
type setting struct {
	what, wanted string
	undo         string                           // instead of what was found
	stays        bool                             // it is not taken back
	makes        bool                             // it makes VFs: none that it finds stays
	allowed      func(*Kernel) error              // asked first; nil: always
	get          func(*Kernel) (string, error)    // "": not there yet
	set          func(k *Kernel, to string) error // returns when it is so
	reached      func(found string) bool          // nil: equal to wanted
}

func (s *Step) done(found string) bool {
	if s.reached != nil {
		return s.reached(found)
	}
	return found == s.wanted
}

// String is the step as one line.
func (s *Step) String() string {
	where := ""
	if s.PF != "" {
		where = s.Name + " (" + s.PF + "): "
	}
	return fmt.Sprintf("%s%s: %s -> %s", where, s.What, orDash(s.Found), s.Wanted)
}

// Observe asks the kernel what is there, and drops the steps that are not needed.
// Without it a plan has every step, and Apply finds out.
func (p *Plan) Observe(k *Kernel) error {
	var needed []*Step
	for _, s := range p.Steps {
		after := s.follows != nil && s.follows.needed
		s.fresh = after && (s.follows.fresh || s.follows.makes)
		if !s.fresh { // what is there now goes with the old VFs
			found, err := s.get(k)
			if err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
			s.Found = found
			s.Undo = s.back()
		}
		if s.needed = after || !s.done(s.Found); s.needed {
			needed = append(needed, s)
		}
	}
	p.Steps = needed
	return nil
}

func (s *Step) back() string {
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
		_, err := fmt.Fprintln(w, p.Idle())
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

// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// results holds verdicts by the name of the place, then of the attack.
type results map[string]map[string]verdict

// TestAttacks runs every attack everywhere and prints the table.
func TestAttacks(t *testing.T) {
	s := sharedSite(t)
	all := results{}
	s.runControls(t, all)
	for _, places := range [][]place{{openUser, openRoot}, {closedUser, closedRoot, closedSelf, closedRange}} {
		t.Run("in "+places[0].jail, func(t *testing.T) {
			s.startVictims(t, places[0].jail)
			s.closeJails(t)
			for _, p := range places {
				all[p.name] = s.runAttacks(t, p, listNames(rows)...)
			}
		})
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) { requireVerdicts(t, r, all) })
	}
	t.Log(formatTable(rows, all))
}

// listNames returns the names of the attacks.
func listNames(rows []row) (list []string) {
	for _, r := range rows {
		list = append(list, r.name)
	}
	return list
}

// runControls runs the attacks that a plain jail already stops at the place where they succeed.
func (s *site) runControls(t *testing.T, all results) {
	t.Run("outside of jails", func(t *testing.T) {
		s.startVictims(t, "open")
		for _, p := range []place{onNode, rootOnNode, bareChroot, overmounted} {
			var list []string
			for _, r := range rows {
				if r.control.name == p.name {
					list = append(list, r.name)
				}
			}
			all[p.name] = s.runAttacks(t, p, list...)
		}
	})
}

// judgeHostname reports whether the attack changed the node's host name, and restores it.
func (s *site) judgeHostname(t *testing.T, of map[string]verdict) {
	const name, ours = "hostname", "head"
	now := strings.TrimSpace(s.Root("hostname").Stdout)
	switch {
	case now != ours:
		assert.Zero(t, s.Root("hostname", ours).Code)
		of[name] = verdict{escaped, "the node's name became " + now}
	case of[name].word == escaped:
		of[name] = verdict{held, "it is the job's own name that was set"}
	}
}

// requireVerdicts compares the verdicts of one attack with the expected ones.
func requireVerdicts(t *testing.T, r row, all results) {
	control := all[r.control.name][r.name]
	if control.word == held && strings.Contains(control.text, "Function not implemented") {
		t.Skip("needs a kernel with this system call: " + control.text)
	}
	assert.Equal(t, escaped, control.word, "%s in its control (%s): %s", r.name, r.control.name, control)
	for _, p := range []place{closedUser, closedSelf, closedRange, closedRoot} {
		got, ran := all[p.name][r.name]
		want := held
		if r.limit != "" {
			want = escaped
			ran = ran && p.name == closedUser.name // other places may have an obstacle of their own
		}
		if ran && (p.name != closedRoot.name || r.root == "") {
			assert.Equal(t, want, got.word, "%s (%s): %s", r.name, p.name, got)
		}
	}
}

// formatTable returns a table of attacks and places with their verdicts.
func formatTable(rows []row, all results) string {
	var b strings.Builder
	columns := []place{openUser, openRoot, closedUser, closedSelf, closedRange, closedRoot}
	fmt.Fprintf(&b, "\n%-18s %-30s", "attack", "control")
	for _, p := range columns {
		fmt.Fprintf(&b, " %-20s", strings.Replace(p.name, "closed, --jail-root", "closed, jail-root", 1))
	}
	for _, r := range rows {
		fmt.Fprintf(&b, "\n%-18s %-30s", r.name, all[r.control.name][r.name].word+" "+r.control.name)
		for _, p := range columns {
			fmt.Fprintf(&b, " %-20s", all[p.name][r.name].word)
		}
	}
	b.WriteString("\n")
	for _, p := range []place{closedUser, closedSelf, closedRange, closedRoot} {
		for _, r := range rows {
			if v := all[p.name][r.name]; v.word == escaped {
				fmt.Fprintf(&b, "\n%s: %s: %s", p.name, r.name, v.text)
			}
		}
	}
	return b.String()
}

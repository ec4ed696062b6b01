// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gojail/gojail/internal/slurm"
)

// nodeState is the state of a node in Slurm.
type nodeState struct {
	Name   string
	State  []string // "IDLE", "DRAIN"
	Reason string   // reason without the stamp
	stamp  string   // "root@2026-11-21T17:00:00": user and time of the reason
}

// readState returns the state of a node from its record. An unknown base state, anything but words in it, and a reason
// without a stamp are errors.
func readState(record *slurm.Record, name string) (*nodeState, error) {
	state := record.Field("State")
	n := &nodeState{Name: name, State: strings.Split(state, "+"), Reason: record.Reason}
	if record.By != "" {
		n.stamp = record.By + "@" + record.At
	} else if record.Reason != "" {
		return nil, fmt.Errorf("cannot parse the reason of the node %s: %.100q does not say who gave it", name, record.Reason)
	}
	for i, word := range n.State {
		n.State[i] = strings.TrimRight(word, "*") // NOT_RESPONDING in older releases
		if strings.Trim(n.State[i], "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" || n.State[i] == "" {
			return nil, fmt.Errorf("cannot parse the state %.100q of the node %s", state, name)
		}
	}
	if !slices.Contains(baseStates, n.State[0]) {
		return nil, fmt.Errorf("cannot parse the state %.100q of the node %s", state, name)
	}
	return n, nil
}

// baseStates are the states of a node without its flags (slurm.h, enum node_states).
var baseStates = []string{"UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE"}

// hasState reports whether the node has any of the states.
func (n *nodeState) hasState(states ...string) bool {
	return slices.ContainsFunc(states, func(s string) bool { return slices.Contains(n.State, s) })
}

// findUntouchableState returns a state in which the node takes no jobs and must not be changed,
// or "". A node that boots or is in maintenance is checked afterwards.
func (n *nodeState) findUntouchableState() string {
	for _, s := range n.State {
		switch {
		case strings.HasPrefix(s, "REBOOT"), strings.HasPrefix(s, "POWER"),
			slices.Contains([]string{"MAINTENANCE", "MAINT", "FUTURE", "UNKNOWN", "ERROR", "INVALID_REG"}, s):
			return s
		}
	}
	return ""
}

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

// readState returns the state of a node from its record. A reason without a stamp is an error.
func readState(record *slurm.Record, name string) (n *nodeState, err error) {
	n = &nodeState{Name: name, Reason: record.Reason}
	if record.By != "" {
		n.stamp = record.By + "@" + record.At
	} else if record.Reason != "" {
		return nil, fmt.Errorf("cannot parse the reason of the node %s: %.100q does not say who gave it", name,
			record.Reason)
	}
	if n.State, err = record.States(); err != nil {
		return nil, fmt.Errorf("%w of the node %s", err, name)
	}
	return n, nil
}

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

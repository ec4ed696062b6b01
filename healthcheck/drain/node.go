// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// nodeState is the state of a node in Slurm.
type nodeState struct {
	Name   string
	State  []string // "IDLE", "DRAIN"
	Reason string   // reason without the stamp
	stamp  string   // "root@2026-11-21T17:00:00": user and time of the reason
}

// parseNode parses the output of "scontrol show node NAME" (src/api/node_info.c,
// slurm_sprint_node_table). Unknown content is an error.
func parseNode(text, name string) (*nodeState, error) {
	var ( // compiled here, since hardly any run needs these
		nameRule  = regexp.MustCompile(`^NodeName=(\S+) `)
		stateRule = regexp.MustCompile(`(?m)^   State=(\S*) `)
		// Only the first line of a reason has the stamp.
		reasonRule = regexp.MustCompile(`(?m)^   Reason=(.*) \[([^\[\]\s]+@[^\[\]\s]+)\]$`)
		anyReason  = regexp.MustCompile(`(?m)^ *Reason=`)
	)
	n := &nodeState{Name: name}
	m := nameRule.FindAllStringSubmatch(text, -1)
	if len(m) != 1 || m[0][1] != name || strings.Count(text, "NodeName=") != 1 {
		return nil, fmt.Errorf("scontrol show node did not show exactly the node %s", name)
	}
	m = stateRule.FindAllStringSubmatch(text, -1)
	if len(m) != 1 {
		return nil, fmt.Errorf("scontrol show node shows no state of the node %s", name)
	}
	n.State = strings.Split(m[0][1], "+")
	for i, word := range n.State {
		n.State[i] = strings.TrimRight(word, "*") // NOT_RESPONDING in older releases
		if strings.Trim(n.State[i], "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" || n.State[i] == "" {
			return nil, fmt.Errorf("cannot parse the state %.100q of the node %s", m[0][1], name)
		}
	}
	if !slices.Contains(baseStates, n.State[0]) {
		return nil, fmt.Errorf("cannot parse the state %.100q of the node %s", m[0][1], name)
	}
	reasons := reasonRule.FindAllStringSubmatch(text, -1)
	switch {
	case len(reasons) == 1 && len(anyReason.FindAllString(text, -1)) == 1:
		n.Reason, n.stamp = reasons[0][1], reasons[0][2]
	case anyReason.MatchString(text):
		return nil, fmt.Errorf("cannot parse the reason of the node %s", name)
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

// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// nodeState is what Slurm says of a node.
type nodeState struct {
	Name   string
	State  []string // "IDLE", "DRAIN"
	Reason string   // without the stamp
	stamp  string   // "root@2026-11-21T17:00:00": who set the reason, when
}

// parseNode reads what "scontrol show node NAME" writes (src/api/node_info.c,
// slurm_sprint_node_table). What it does not know for certain is an error.
func parseNode(text, name string) (*nodeState, error) {
	var ( // here, as hardly a run comes here
		nameRule  = regexp.MustCompile(`^NodeName=(\S+) `)
		stateRule = regexp.MustCompile(`(?m)^   State=(\S*) `)
		// Only the first line of a reason has the stamp.
		reasonRule = regexp.MustCompile(`(?m)^   Reason=(.*) \[([^\[\]\s]+@[^\[\]\s]+)\]$`)
		anyReason  = regexp.MustCompile(`(?m)^ *Reason=`)
	)
	n := &nodeState{Name: name}
	m := nameRule.FindAllStringSubmatch(text, -1)
	if len(m) != 1 || m[0][1] != name || strings.Count(text, "NodeName=") != 1 {
		return nil, fmt.Errorf("scontrol does not tell of the node %s alone", name)
	}
	m = stateRule.FindAllStringSubmatch(text, -1)
	if len(m) != 1 {
		return nil, fmt.Errorf("scontrol tells no state of the node %s", name)
	}
	n.State = strings.Split(m[0][1], "+")
	for i, word := range n.State {
		n.State[i] = strings.TrimRight(word, "*") // older releases' NOT_RESPONDING
		if strings.Trim(n.State[i], "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" || n.State[i] == "" {
			return nil, fmt.Errorf("cannot understand the state %.100q of the node %s", m[0][1], name)
		}
	}
	if !slices.Contains(bases, n.State[0]) {
		return nil, fmt.Errorf("cannot understand the state %.100q of the node %s", m[0][1], name)
	}
	reasons := reasonRule.FindAllStringSubmatch(text, -1)
	switch {
	case len(reasons) == 1 && len(anyReason.FindAllString(text, -1)) == 1:
		n.Reason, n.stamp = reasons[0][1], reasons[0][2]
	case anyReason.MatchString(text):
		return nil, fmt.Errorf("cannot understand the reason of the node %s", name)
	}
	return n, nil
}

// bases are the states of a node without its flags (slurm.h, enum node_states).
var bases = []string{"UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE"}

func (n *nodeState) is(states ...string) bool {
	return slices.ContainsFunc(states, func(s string) bool { return slices.Contains(n.State, s) })
}

// busyWithItself is a state in which a node takes no jobs and is not ours to touch,
// or "". A node that boots or is in a maintenance is looked at afterwards.
func (n *nodeState) busyWithItself() string {
	for _, s := range n.State {
		switch {
		case strings.HasPrefix(s, "REBOOT"), strings.HasPrefix(s, "POWER"),
			slices.Contains([]string{"MAINTENANCE", "MAINT", "FUTURE", "UNKNOWN", "ERROR", "INVALID_REG"}, s):
			return s
		}
	}
	return ""
}

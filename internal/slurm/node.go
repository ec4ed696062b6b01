// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Node is a node as slurmctld sees it.
type Node struct {
	Name          string
	State         string   // base state: idle, mixed, allocated, down, error, future or unknown
	Flags         []string // drain, maintenance, not_responding, …
	Reason        string   // reason why it is drained or down
	ReasonUser    string
	ReasonTime    time.Time // zero: unknown
	Partitions    []string
	GPUs          []GPUs
	CPUs          int
	CPUsAllocated int
	Version       string // version of its slurmd
}

// Nodes are all nodes of the cluster.
type Nodes struct {
	List []Node
	Odd  Odd
}

// GPUs are the GPUs of one type of a node.
type GPUs struct {
	Type             string // empty if gres.conf names none
	Total, Allocated int
}

// nodesMost is the limit of the nodes that are read.
const nodesMost = 1 << 17

// baseStates are the states of which a node has exactly one (NODE_STATE_BASE of slurm.h, and MIXED).
var baseStates = []string{"unknown", "down", "idle", "allocated", "error", "mixed", "future"}

// setStates sets the base state and the flags from Slurm's words.
func (n *Node) setStates(words []string) {
	n.State = "unknown"
	for _, word := range words {
		// The suffixes are sinfo's marks for a node that does not respond, is powered down, …
		word = strings.ToLower(strings.TrimRight(word, "*~#!%$@^-"))
		switch {
		case word == "":
		case slices.Contains(baseStates, word):
			n.State = word
		default:
			n.Flags = append(n.Flags, toWord(word))
		}
	}
	slices.Sort(n.Flags)
	n.Flags = slices.Compact(n.Flags)
}

// States returns the words of the node's state, the base state first: "IDLE", "DRAIN". It fails if the base state is
// unknown, or if the state has anything but words.
func (r *Record) States() (words []string, err error) {
	state := r.Field("State")
	for word := range strings.SplitSeq(state, "+") {
		word = strings.TrimRight(word, "*") // NOT_RESPONDING in older releases
		if strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" || word == "" {
			return nil, fmt.Errorf("cannot parse the state %.100q", state)
		}
		words = append(words, word)
	}
	if !slices.Contains(baseStates, strings.ToLower(words[0])) {
		return nil, fmt.Errorf("cannot parse the state %.100q", state)
	}
	return words, nil
}

// wordMost is the limit of a state, a flag or the reason of a job, in bytes.
const wordMost = 40

// toWord returns a text with letters, digits and underscores only, because Slurm's own words have no other characters.
func toWord(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_':
			return r
		}
		return '_'
	}, strings.TrimSpace(text))
	return text[:min(len(text), wordMost)]
}

// textMost is the limit of a name or a reason, in bytes.
const textMost = 200

// toLabel returns a text that can be the value of a label: one line of valid UTF-8, of limited length.
func toLabel(text string) string {
	if len(text) > textMost {
		text = text[:textMost]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}

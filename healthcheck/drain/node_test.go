// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// oddTexts are what other tools and administrators write into a comment of a node.
var oddTexts = []string{
	"kept for Reason=reboot later", "{\"a\":1,\n\"b\":2}", "a\n   Reason=b [root@2026-01-01T00:00:00]", "a\n   State=DOWN ThreadsPerCore=1", "NodeName=n2",
	"a\n\nNodeName=n1 Arch=x\n   State=DOWN+DRAIN\n   Reason=b [bob@2026-01-01T00:00:00]\n", "\xff\x01", "[root@2026-01-01T00:00:00]",
}

// TestACommentIsNoReason: whatever the comment of a node is, a fault drains the node, and its repair returns it.
func TestACommentIsNoReason(t *testing.T) {
	for _, text := range oddTexts {
		s := newSite(t)
		s.set("comment", text)
		s.run("fo fo")
		require.NoError(t, s.outcome.Err, text)
		s.is("IDLE+DRAIN", reasonA)
		s.run("oo oo oo")
		assert.Equal(t, Undrain, s.outcome.Action, text)
	}
}

// TestStates: a fault drains a node that takes jobs, also with a flag that a later release may have, and one that is down. A node that reboots, that
// somebody else has drained, or whose state is not known is left alone.
func TestStates(t *testing.T) {
	for state, want := range map[string]string{
		"IDLE": "drain", "MIXED": "drain", "ALLOCATED+COMPLETING": "drain", "IDLE+PLANNED": "drain", "MIXED+PLANNED": "drain", "IDLE*": "drain", "IDLE+NOT_RESPONDING": "drain",
		"IDLE+CLOUD": "drain", "IDLE+DYNAMIC_NORM": "drain", "IDLE+BLOCKED": "drain", "IDLE+RESERVED": "drain", "IDLE+OF_LATER": "drain", "DOWN*+NOT_RESPONDING": "drain",
		"IDLE+REBOOT_REQUESTED": "none", "IDLE+REBOOT_ISSUED": "none", "DOWN+REBOOT_ISSUED+NOT_RESPONDING": "none", "IDLE+CLOUD+POWERED_DOWN": "none",
		"IDLE+CLOUD+POWERING_UP": "none", "IDLE+MAINTENANCE+RESERVED": "none", "UNKNOWN": "none", "FUTURE": "none", "ERROR": "none", "DOWN+INVALID_REG": "none",
		"IDLE+DRAIN": "none", "ALLOCATED+DRAIN": "none", "IDLE+DRAIN+REBOOT_REQUESTED": "none", "DOWN+DRAIN+NOT_RESPONDING": "none",
		"": "error", "OF_LATER": "error", "OF_LATER+DRAIN": "error", "DRAINED": "error", "idle": "error", "IDLE+": "error", "IDLE+%": "error", "(null)": "error", "N/A": "error", "PLANNED": "error",
	} {
		s := newSite(t)
		s.set("state", state)
		if state != "" && (want == "none") {
			s.set("reason", "memory\n   State=IDLE [bob@2026-01-01T00:00:00]")
			s.set("stamp", "alice@2026-11-21T18:00:00")
		}
		s.run("fo fo")
		got := fmt.Sprint(s.outcome.Action)
		if s.outcome.Err != nil {
			got = "error"
			assert.Contains(t, s.outcome.Err.Error(), "Slurm was left unchanged", state)
		}
		assert.Equal(t, want, got, state)
		if want != "drain" {
			assert.NotContains(t, s.calls(), "update", state)
		}
	}
}

// TestUndrainOfStates: only the drain that this program has set ends, and only of a node that may take jobs.
func TestUndrainOfStates(t *testing.T) {
	for state, want := range map[string]string{
		"IDLE+DRAIN": "undrain", "IDLE+DRAIN+PLANNED": "undrain", "MIXED+DRAIN": "undrain", "IDLE+DRAIN+OF_LATER": "undrain", "IDLE+DRAIN+NOT_RESPONDING": "undrain",
		"IDLE": "forget", "IDLE+PLANNED": "forget", "IDLE+REBOOT_REQUESTED": "forget",
		"IDLE+DRAIN+REBOOT_REQUESTED": "none", "DOWN+DRAIN": "none", "IDLE+DRAIN+POWERING_DOWN": "none", "IDLE+DRAIN+MAINTENANCE": "none",
		"OF_LATER+DRAIN": "error", "DRAINED": "error", "IDLE+DRAIN+%": "error",
	} {
		s := newSite(t)
		s.run("fo fo")
		s.is("IDLE+DRAIN", reasonA)
		s.calls()
		s.set("state", state)
		s.run("oo oo oo")
		got := fmt.Sprint(s.outcome.Action)
		if s.outcome.Err != nil {
			got = "error"
		}
		if want != "forget" { // the next run has nothing to do any more
			assert.Equal(t, want, got, state)
		}
		if want != "undrain" {
			assert.NotContains(t, s.calls(), "update", state)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestEditors: the root of an edit is uid 0 of the node only if it cannot show that to the node's daemons.
func TestEditors(t *testing.T) {
	for _, row := range []struct {
		canMap, canScope bool
		uid              uint32
		sockets, hidden  string
	}{
		{true, true, editID, "step", "hidden"},
		{true, false, editID, "node", "hidden"},
		{false, true, 0, "step", "hidden"},
		{false, false, 0, "node", "none"},
	} {
		who, sockets := PlanEditor(row.canMap, row.canScope)
		assert.Equal(t, row.uid, who.uid, row)
		assert.Equal(t, row.uid, who.gid, row)
		assert.Equal(t, row.sockets, sockets, row)
		assert.Equal(t, row.hidden, who.sockets(), row)
	}
}

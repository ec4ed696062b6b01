// SPDX-License-Identifier: Apache-2.0

package run

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
)

// TestAHangThatMustNotDrain: neither a timeout nor a process that is still there drains.
func TestAHangThatMustNotDrain(t *testing.T) {
	hung := in("a", "forever")
	hung.SpareReason = func(h *check.Host) string { return map[string]string{"true": "the site asks for it"}[string(h.State)] }
	r := runner(t, hung)
	assert.Equal(t, []string{"forever: fail: does not answer"}, said(r.Run(t.Context())))
	r = runner(t, hung)
	r.States["forever"] = json.RawMessage("true")
	assert.Equal(t, []string{"forever: warn: does not answer; the site asks for it"}, said(r.Run(t.Context())))
	lock, err := takeLock(r.slotPath(1)) // as the process of an earlier run does that is still there
	require.NoError(t, err)
	defer lock.Close()
	_, err = lock.WriteString("forever")
	require.NoError(t, err)
	assert.Equal(t, []string{"forever: warn: does not answer; the site asks for it"}, said(r.Run(t.Context())))
}

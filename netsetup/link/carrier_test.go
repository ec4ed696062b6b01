// SPDX-License-Identifier: Apache-2.0

package link

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWaitCarrier(t *testing.T) {
	n, far := space(t), space(t)
	first, farFirst := veth(t, n, "net1", far, "p1")
	second, farSecond := veth(t, n, "net2", far, "p2")
	up(t, n, first)
	up(t, n, second)
	up(t, far, farFirst)

	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.WaitCarrier(ctx, first, second) }()
	cancel(errors.New("10 s are over"))
	err := <-done
	var none *NoCarrierError
	require.ErrorAs(t, err, &none)
	require.Len(t, none.Links, 1)
	assert.Equal(t, "net2", none.Links[0].Name)
	assert.ErrorContains(t, err, "wait for the carrier of net2: none: 10 s are over; look at")
	assert.ErrorIs(t, func() error {
		c, e := context.WithTimeout(t.Context(), time.Nanosecond)
		defer e()
		return n.WaitCarrier(c, second)
	}(), context.DeadlineExceeded)

	go func() { done <- n.WaitCarrier(t.Context(), first, second) }()
	up(t, far, farSecond)
	require.NoError(t, <-done)
	require.NoError(t, n.WaitCarrier(t.Context(), first, second), "no notice comes any more")
	assert.ErrorIs(t, n.WaitCarrier(t.Context(), 4711), ErrNotFound)
}

// TestWaitCarrierAmongOthers: the notices of another link wake it up, and it goes on waiting.
func TestWaitCarrierAmongOthers(t *testing.T) {
	n, far := space(t), space(t)
	index, farEnd := veth(t, n, "net1", far, "p1")
	other, _ := veth(t, n, "net2", far, "p2")
	up(t, n, index)
	done := make(chan error, 1)
	go func() { done <- n.WaitCarrier(t.Context(), index) }()
	for range 20 {
		require.NoError(t, n.Up(other))
		require.NoError(t, n.Down(other))
	}
	select {
	case err := <-done:
		t.Fatal("it did not wait: ", err)
	default:
	}
	up(t, far, farEnd)
	require.NoError(t, <-done)
}

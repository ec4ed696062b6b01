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
	n, far := newSpace(t), newSpace(t)
	first, farFirst := addVeth(t, n, "net1", far, "p1")
	second, farSecond := addVeth(t, n, "net2", far, "p2")
	setUp(t, n, first)
	setUp(t, n, second)
	setUp(t, far, farFirst)

	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.WaitCarrier(ctx, first, second) }()
	cancel(errors.New("10 s are over"))
	err := <-done
	var none *NoCarrierError
	require.ErrorAs(t, err, &none)
	require.Len(t, none.Links, 1)
	assert.Equal(t, "net2", none.Links[0].Name)
	assert.ErrorContains(t, err, "wait for the carrier of net2: no carrier: 10 s are over; check")
	assert.ErrorIs(t, func() error {
		c, e := context.WithTimeout(t.Context(), time.Nanosecond)
		defer e()
		return n.WaitCarrier(c, second)
	}(), context.DeadlineExceeded)

	go func() { done <- n.WaitCarrier(t.Context(), first, second) }()
	setUp(t, far, farSecond)
	require.NoError(t, <-done)
	require.NoError(t, n.WaitCarrier(t.Context(), first, second), "no notice comes any more")
	assert.ErrorIs(t, n.WaitCarrier(t.Context(), 4711), ErrNotFound)
}

// TestWaitCarrierAmongOthers checks that notifications about another link do not end the
// wait.
func TestWaitCarrierAmongOthers(t *testing.T) {
	n, far := newSpace(t), newSpace(t)
	index, farEnd := addVeth(t, n, "net1", far, "p1")
	other, _ := addVeth(t, n, "net2", far, "p2")
	setUp(t, n, index)
	done := make(chan error, 1)
	go func() { done <- n.WaitCarrier(t.Context(), index) }()
	for range 20 {
		require.NoError(t, n.SetUp(other))
		require.NoError(t, n.SetDown(other))
	}
	select {
	case err := <-done:
		t.Fatal("it did not wait: ", err)
	default:
	}
	setUp(t, far, farEnd)
	require.NoError(t, <-done)
}

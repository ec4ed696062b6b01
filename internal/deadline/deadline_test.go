// SPDX-License-Identifier: Apache-2.0

package deadline

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestCall(t *testing.T) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	hang := func() string { <-never; return "late" }
	answer := func() string { return "answer" }

	value, inTime := Call(context.Background(), answer)
	assert.True(t, inTime)
	assert.Equal(t, "answer", value)
	value, inTime = CallFor(time.Minute, answer)
	assert.True(t, inTime)
	assert.Equal(t, "answer", value)

	value, inTime = Call(ended, hang)
	assert.False(t, inTime)
	assert.Empty(t, value)
	for _, limit := range []time.Duration{time.Millisecond, 0, -time.Hour} {
		value, inTime = CallFor(limit, hang)
		assert.False(t, inTime, limit)
		assert.Empty(t, value)
	}
}

// A result that has arrived counts, even if the time is up because of another call.
func TestAResultThatHasArrivedCounts(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for range 50 {
		p := Start(func() int { return 7 })
		p.Await(context.Background())
		for _, await := range []func() (int, bool){
			func() (int, bool) { return p.Await(ended) },
			func() (int, bool) { return p.AwaitFor(0) },
			func() (int, bool) { return p.AwaitFor(-time.Second) },
		} {
			value, inTime := await()
			assert.True(t, inTime)
			assert.Equal(t, 7, value)
		}
	}
}

func TestAwaitAfterAwaitAndBySeveral(t *testing.T) {
	release := make(chan struct{})
	p := Start(func() error { <-release; return context.Canceled })
	_, inTime := p.AwaitFor(0)
	assert.False(t, inTime)
	close(release)
	var waiting sync.WaitGroup
	for range 8 {
		waiting.Go(func() {
			err, inTime := p.AwaitFor(time.Minute)
			assert.True(t, inTime)
			assert.ErrorIs(t, err, context.Canceled)
		})
	}
	waiting.Wait()
}

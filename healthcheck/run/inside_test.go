// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
)

// again is the runner of another run of the same node, after the process of the first one has ended.
func again(t *testing.T, r *Runner) *Runner {
	if r.lock != nil {
		require.NoError(t, r.lock.Close())
	}
	all := service()
	return &Runner{Host: r.Host, Kept: r.Kept, Checks: r.Checks, Locks: r.Locks, Self: r.Self, Inside: &all}
}

func TestAChildInside(t *testing.T) {
	r := again(t, runner(t, in("a", "fine"), in("b", "asks"), in("", "fine")))
	r.Self = []string{"/bin/false"}
	for range 2 {
		want := []string{"fine: ok: fine on n1", "asks: ok: hello:/:?<nil>", "fine: ok: fine on n1"}
		assert.Equal(t, want, said(r.Run(context.Background())))
		path := filepath.Join(r.Locks, "file")
		require.NoError(t, r.Writer("file")(context.Background(), path, []byte("x")))
		assert.FileExists(t, path)
		assert.FileExists(t, r.mark())
		require.NoError(t, r.Close())
		assert.NoFileExists(t, r.mark())

		// A check that has answered may have left a thread.
		_, err := take(r.slot(0))
		var held *heldError
		require.ErrorAs(t, err, &held)
		assert.Equal(t, "asks", held.by)
		r = again(t, r)
	}
}

// What hangs inside cannot be ended before the process, and takes no other check with it.
// From then on all children have processes, until a run ends well.
func TestWhatHangsInside(t *testing.T) {
	r := again(t, runner(t, in("a", "forever"), in("a", "fine"), in("b", "fine")))
	want := []string{"forever: fail: does not answer", "fine: ok: fine on n1", "fine: ok: fine on n1"}
	assert.Equal(t, want, said(whole(t, r)))
	assert.FileExists(t, r.mark())

	r = again(t, r)
	assert.Equal(t, want, said(whole(t, r)))
	assert.FileExists(t, r.mark())

	r.Checks = r.Checks[1:]
	for _, inside := range []bool{false, true} {
		r = again(t, r)
		assert.Equal(t, want[1:], said(whole(t, r)))
		assert.Equal(t, inside, r.lock != nil)
		assert.NoFileExists(t, r.mark())
	}
}

func TestWhatHangsInsideAProcessThatCannotBeKilledIsNotJoined(t *testing.T) {
	r := again(t, runner(t, in("a", "forever"), in("a", "fine"), in("b", "fine")))
	whole(t, r)
	want := []string{"forever: fail: does not answer", "fine: unknown: an earlier check beside it still hangs", "fine: ok: fine on n1"}
	next := &Runner{Host: r.Host, Kept: r.Kept, Checks: r.Checks, Locks: r.Locks, Self: r.Self, Inside: r.Inside}
	next.Checks[0].Timeout = long
	assert.Equal(t, want, said(whole(t, next)))
	assert.Nil(t, next.lock)
	assert.FileExists(t, r.slot(1))
}

// A run that was killed had something inside, perhaps, that crashed or that slurmd did not wait for.
func TestAfterARunThatWasKilledNothingIsInside(t *testing.T) {
	r := again(t, runner(t, in("a", "fine")))
	r.Run(context.Background()) // without Close
	for _, inside := range []bool{false, true} {
		r = again(t, r)
		whole(t, r)
		assert.Equal(t, inside, r.lock != nil)
	}
}

func TestTheWholeEndsAlsoIfEverythingHangsInside(t *testing.T) {
	r := again(t, runner(t, in("a", "forever"), in("b", "forever")))
	for i := range r.Checks {
		r.Checks[i].Timeout = long
	}
	ctx, cancel := context.WithTimeout(context.Background(), short)
	defer cancel()
	for _, result := range r.Run(ctx) {
		assert.Equal(t, check.Unknown, result.Verdict)
	}
	require.NoError(t, r.Close())
	assert.FileExists(t, r.mark())
}

// Questions that are left when a child is given up are not for it any more.
func TestWhatIsGivenUpInsideEndsWithItsCheck(t *testing.T) {
	r := again(t, runner(t, in("a", "waits"), in("a", "gone")))
	r.Checks[0].Timeout = short
	r.Run(context.Background())
	require.NoError(t, os.WriteFile(filepath.Join(r.Locks, "pid"), nil, 0o600)) // waits ends
	time.Sleep(short)                                                           // gone would end this process
	require.NoError(t, r.Close())
}

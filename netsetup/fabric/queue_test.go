// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/wholefile"
)

func openQueue(t *testing.T) *Queue {
	t.Helper()
	q, err := OpenQueue(filepath.Join(t.TempDir(), "ufm"))
	require.NoError(t, err)
	return q
}

// listQueue returns the stored calls, such as "add 0011 00000000000000fe".
func listQueue(t *testing.T, q *Queue) []string {
	t.Helper()
	entries, err := q.ListEntries(t.Context())
	require.NoError(t, err)
	lines := []string{}
	for _, e := range entries {
		lines = append(lines, fmt.Sprintf("%s %04x %s", e.Op, e.PKey, e.GUID))
	}
	return lines
}

func TestDoSendsAndErases(t *testing.T) {
	u, c, _ := startUFM(t)
	q := openQueue(t)
	require.NoError(t, q.Do(t.Context(), c, Add, 0x11, 0xfe, 0xfd))
	require.Len(t, u.Calls(), 1, "one call for both")
	require.Equal(t, []string{"00000000000000fd", "00000000000000fe"}, u.Members(0x11))
	require.NoError(t, q.Do(t.Context(), c, Remove, 0x11, 0xfe))
	require.Equal(t, []string{"00000000000000fd"}, u.Members(0x11))
	require.Empty(t, listQueue(t, q))
	require.NoError(t, q.Do(t.Context(), c, Add, 0x7fff, 0xfe))
	require.Len(t, u.Calls(), 2, "none for the default partition")
}

func TestKeptWhileUFMIsAway(t *testing.T) {
	u, c, _ := startUFM(t)
	q := openQueue(t)
	u.FailFirst(99, 503)
	err := q.Do(t.Context(), c, Add, 0x11, 0xfe)
	require.ErrorIs(t, err, ErrQueued)
	require.ErrorIs(t, err, ErrUnreachable)
	requireOneLine(t, err)
	require.NoError(t, q.Put(t.Context(), Add, 0x12, 0xfe))
	require.NoError(t, q.Put(t.Context(), Remove, 0x13, 0xfc))
	require.NoError(t, q.Put(t.Context(), Add, 0x11, 0xfd))
	require.NoError(t, q.Put(t.Context(), Remove, 0x11, 0xfe))
	want := []string{"add 0012 00000000000000fe", "remove 0013 00000000000000fc", "add 0011 00000000000000fd", "remove 0011 00000000000000fe"}
	require.Equal(t, want, listQueue(t, q), "the remove took the add's place; the order is that of the last word")

	done, err := q.Replay(t.Context(), c)
	require.Zero(t, done)
	require.ErrorContains(t, err, "4 calls are still queued in "+q.dir)
	require.Equal(t, want, listQueue(t, q))

	u.ClearFault()
	before := len(u.Calls())
	done, err = q.Replay(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, 4, done)
	require.Empty(t, listQueue(t, q))
	calls := u.Calls()[before:]
	require.Len(t, calls, 4)
	for i, part := range []string{"0x0012", "0x0013", "0x0011", "remove_guids"} {
		require.Contains(t, calls[i], part)
	}
	require.Equal(t, []string{"00000000000000fd"}, u.Members(0x11))
}

// TestLostAnswer loses the answer to an add that UFM has executed. The remove must be sent.
func TestLostAnswer(t *testing.T) {
	u, c, _ := startUFM(t)
	q := openQueue(t)
	u.CutConnection(true)
	require.ErrorIs(t, q.Do(t.Context(), c, Add, 0x11, 0xfe), ErrQueued)
	require.Equal(t, []string{"00000000000000fe"}, u.Members(0x11))
	require.NoError(t, q.Put(t.Context(), Remove, 0x11, 0xfe))
	u.ClearFault()
	_, err := q.Replay(t.Context(), c)
	require.NoError(t, err)
	require.Empty(t, u.Members(0x11))
	require.Empty(t, listQueue(t, q))
}

func TestRefusalIsReportedAndTheRestGoesOn(t *testing.T) {
	u, c, _ := startUFM(t)
	q := openQueue(t)
	require.NoError(t, q.Put(t.Context(), Add, 0x11, 0xfe))
	require.NoError(t, q.Put(t.Context(), Add, 0x12, 0xfe))
	u.FailFirst(1, 409)
	done, err := q.Replay(t.Context(), c)
	require.Equal(t, 1, done)
	require.ErrorContains(t, err, "it rejects the call (HTTP 409)")
	require.Equal(t, []string{"add 0011 00000000000000fe"}, listQueue(t, q))
}

// TestNewerCallWhileOneIsOnItsWay ends the job while its add hangs.
func TestNewerCallWhileOneIsOnItsWay(t *testing.T) {
	u, c, _ := startUFM(t)
	q := openQueue(t)
	release := u.Hold()
	done := make(chan error)
	go func() { done <- q.Do(t.Context(), c, Add, 0x11, 0xfe) }()
	require.Eventually(t, func() bool { return len(u.Calls()) > 0 }, time.Minute, time.Millisecond)
	require.NoError(t, q.Put(t.Context(), Remove, 0x11, 0xfe), "is not held up")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, q.Do(ctx, c, Remove, 0x11, 0xfe), ErrQueued, "does not overtake the add")
	require.Len(t, u.Calls(), 1)
	u.ClearFault()
	require.NoError(t, q.Do(t.Context(), c, Add, 0x11, 0xfd), "another GUID does not wait")
	release()
	require.NoError(t, <-done)
	require.Equal(t, []string{"00000000000000fd"}, u.Members(0x11), "the remove came last")
	require.Empty(t, listQueue(t, q))
}

func TestDamagedEntriesAreSetAside(t *testing.T) {
	u, c, _ := startUFM(t)
	q := openQueue(t)
	require.NoError(t, q.Put(t.Context(), Add, 0x11, 0xfe))
	require.NoError(t, q.Put(t.Context(), Add, 0x11, 0xfd))
	whole, err := os.ReadFile(q.entryPath(0x11, 0xfd))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(q.entryPath(0x11, 0xfd), whole[:20], 0o600))
	require.NoError(t, os.WriteFile(q.entryPath(0x12, 0xfd), whole, 0o600)) // another's text
	require.NoError(t, os.WriteFile(q.entryPath(0x11, 0xfc)+wholefile.Suffix, whole[:3], 0o600))
	done, err := q.Replay(t.Context(), c)
	require.Equal(t, 1, done)
	require.ErrorContains(t, err, "0011-00000000000000fd.json.damaged is damaged; compare the partition")
	require.ErrorContains(t, err, "0012-00000000000000fd.json.damaged is damaged")
	require.Equal(t, []string{"00000000000000fe"}, u.Members(0x11), "what is whole is sent")
	_, err = q.Replay(t.Context(), c)
	require.ErrorContains(t, err, "fd.json.damaged", "still reported")
	_, err = q.ListEntries(t.Context())
	require.ErrorContains(t, err, "fd.json.damaged")
	require.NoError(t, q.Do(t.Context(), c, Add, 0x11, 0xfd), "it does not stand in the way")
}

func TestQueueMustBeRoots(t *testing.T) {
	startUFM(t) // for root
	q := openQueue(t)
	require.NoError(t, os.Chmod(q.dir, 0o777))
	_, err := OpenQueue(q.dir)
	require.ErrorContains(t, err, "run: chmod go-w "+q.dir)
	_, err = OpenQueue(q.dir + "/a/b")
	require.ErrorContains(t, err, "cannot create "+q.dir+"/a/b: no such file")
}

func TestManyAtOnce(t *testing.T) {
	u, c, _ := startUFM(t)
	q := openQueue(t)
	var group sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		group.Go(func() {
			g := GUID(0x100 + i)
			errs[i] = q.Do(t.Context(), c, Add, 0x11, g)
			if i%2 == 0 && errs[i] == nil {
				errs[i] = q.Do(t.Context(), c, Remove, 0x11, g)
			}
			if i%4 == 0 && errs[i] == nil {
				_, errs[i] = q.Replay(t.Context(), c)
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, u.Members(0x11), 8)
	require.Empty(t, listQueue(t, q))
}

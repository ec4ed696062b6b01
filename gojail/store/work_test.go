// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEndOfAnotherCommand: a command that has released the lock of its work item, and is about to remove it, and one that takes
// the item for an orphan do not fail by each other.
func TestEndOfAnotherCommand(t *testing.T) {
	j := newJail(t)
	ctx := context.Background()
	ended := make(chan error, 1)
	go func() {
		var err error
		for n := 0; n < 100 && err == nil; n++ {
			var work *Work
			if work, err = j.StartBuild(ctx, false); err == nil {
				err = work.Remove()
			}
		}
		ended <- err
	}()
	for {
		require.NoError(t, j.withLock(ctx, func() error { return nil }))
		select {
		case err := <-ended:
			require.NoError(t, err)
			require.NoError(t, j.withLock(ctx, func() error { return nil }))
			j.mustBeClean(t)
			return
		default:
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

func init() {
	nstest.Actions["fill"] = func(dir string) (any, error) {
		err := errors.Join(nstest.MakePrivate(), unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755,size=2m"))
		if err != nil {
			return nil, err
		}
		return collectOnFullStorage(context.Background(), dir)
	}
}

// collectOnFullStorage returns what a collection removes from a store that has used all of its storage.
func collectOnFullStorage(ctx context.Context, dir string) ([]Collected, error) {
	s, err := Open(dir)
	if err != nil {
		return nil, err
	}
	j, err := s.MakeJail("debian")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(j.publish(ctx, "1", FormatDir), j.publish(ctx, "2", FormatDir)); err != nil {
		return nil, err
	}
	if _, err := j.SwitchTo(ctx, "2", "me"); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "full"), make([]byte, 4<<20), 0o644); !errors.Is(err, unix.ENOSPC) {
		return nil, errors.Join(errors.New("the storage is not full"), err)
	}
	return j.Collect(ctx, 0, func() (*Survey, error) { return &Survey{}, nil })
}

// TestCollectOnFullStorage: a removal needs no space for the name of who removes.
func TestCollectOnFullStorage(t *testing.T) {
	var removed []Collected
	require.NoError(t, nstest.RunText(t, "fill", t.TempDir(), &removed))
	assert.Equal(t, []Collected{{Version: "1", Removed: true}}, removed)
}

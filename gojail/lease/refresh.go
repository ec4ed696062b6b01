// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/deadline"
	"github.com/gojail/gojail/internal/filelock"
	"github.com/gojail/gojail/internal/statefile"
)

// Names in the state directory.
const (
	lockFile  = "lease.lock" // flock(2): one process writes the lease of this node at a time
	leaseFile = "lease.json" // copy of the lease in the store
)

// interval is the time after which an unchanged lease is written again.
const interval = time.Hour

// Refresh writes the lease of this node if it has changed, if the last one is older than interval, or if must is set.
// It returns when ctx ends, even if the storage does not answer.
func Refresh(ctx context.Context, s *state.State, c *config.Config, must bool) error {
	return refreshUntil(ctx, s, c, must, builderTimeout)
}

// RefreshWritten calls Refresh on a node that has written a lease before. On another machine, such as a server on which
// jails are built, it does nothing.
func RefreshWritten(ctx context.Context, s *state.State, c *config.Config) error {
	if _, err := os.Lstat(filepath.Join(s.Path(), leaseFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return Refresh(ctx, s, c, false)
}

func refreshUntil(ctx context.Context, s *state.State, c *config.Config, must bool, patience time.Duration) error {
	if c.Store == "" {
		return nil
	}
	err, inTime := error(nil), false
	if ctx.Err() == nil { // a call that nobody awaits would still write to the state directory
		err, inTime = deadline.Call(ctx, func() error { return refresh(ctx, s, c, must, patience) })
	}
	if !inTime || errors.Is(err, filelock.ErrBusy) { // the process that holds the lock waits for the store
		return fmt.Errorf("cannot write the lease of this node: the store %s does not answer in time", c.Store)
	}
	return err
}

func refresh(ctx context.Context, s *state.State, c *config.Config, must bool, patience time.Duration) error {
	path := filepath.Join(s.Path(), lockFile)
	lock, err := filelock.Wait(ctx, path)
	switch {
	case errors.Is(err, filelock.ErrBusy):
		return err
	case err != nil:
		return filelock.Explain(path, err)
	}
	defer lock.Close()
	opened, err := store.Open(c.Store)
	if err != nil {
		return err
	}
	now, err := makeLease(ctx, s, c, opened, patience)
	if err != nil {
		return err
	}
	var before store.Lease
	err = statefile.Read(filepath.Join(s.Path(), leaseFile), &before, nil)
	var damaged *statefile.DamagedError
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &damaged) {
		return err
	}
	age := now.Asked.Sub(before.Asked)
	before.Asked = now.Asked
	if err == nil && !must && 0 <= age && age < interval && reflect.DeepEqual(before, *now) {
		return nil
	}
	if err := opened.WriteLease(now); err != nil {
		return err
	}
	return statefile.Write(filepath.Join(s.Path(), leaseFile), now)
}

// newLease returns the lease of a node that uses nothing.
func newLease(c *config.Config) *store.Lease {
	return &store.Lease{Node: c.Node, Cluster: node.SlurmValue(c, "ClusterName"), Asked: time.Now(),
		Uses: []store.Use{}}
}

// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gojail/gojail/netsetup/attach"
)

// HasNetwork reports whether the state directory has a record of the job's network.
func HasNetwork(state, job string) bool {
	_, err := os.Lstat(filepath.Join(attach.Dir(state), "jobs", job+".json"))
	return err == nil
}

// Release gives a job's VFs back. What it cannot do now, Sweep does later.
func (n Node) Release(ctx context.Context, job string) error {
	site, end, err := n.open()
	defer end()
	if site.Host < 0 {
		return err
	}
	return errors.Join(err, attach.Release(ctx, site, job))
}

// Sweep gives back the VFs and addresses of jobs that are gone. It returns nil if no job
// ever had a network on this node.
func (n Node) Sweep(ctx context.Context, alive func(job string) bool) (*attach.Swept, error) {
	if _, err := os.Lstat(attach.Dir(n.State)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	site, end, err := n.openToSweep()
	defer end()
	if site.Host < 0 {
		return nil, err
	}
	swept, failed := attach.Sweep(ctx, site, alive)
	return swept, errors.Join(err, failed)
}

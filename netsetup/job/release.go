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
	_, err := os.Lstat(filepath.Join(attach.StateDir(state), "jobs", job+".json"))
	return err == nil
}

// Release takes back a job's VFs. What it cannot release now, Sweep releases later.
func (n Node) Release(ctx context.Context, job string) error {
	site, end, err := n.openSite()
	defer end()
	if site.Host < 0 {
		return err
	}
	return errors.Join(err, attach.Release(ctx, site, job))
}

// Sweep takes back the VFs and addresses of jobs that have ended. It returns nil if no job
// ever had a network on this node.
func (n Node) Sweep(ctx context.Context, alive func(job string) bool) (*attach.Swept, error) {
	if _, err := os.Lstat(attach.StateDir(n.State)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	site, end, err := n.openSiteToSweep()
	defer end()
	if site.Host < 0 {
		return nil, err
	}
	swept, failed := attach.Sweep(ctx, site, alive)
	return swept, errors.Join(err, failed)
}

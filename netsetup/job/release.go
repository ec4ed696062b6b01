// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/gojail/gojail/netsetup/attach"
)

// HasNetwork reports whether the state directory has anything of the job's network: its record, or a VF that could not
// be restored.
func HasNetwork(state, job string) bool { return attach.HasAnything(attach.StateDir(state), job) }

// Release takes back a job's VFs. Sweep releases later what Release cannot release now.
func (n Node) Release(ctx context.Context, job string) error {
	site, end, err := n.openSite()
	defer end()
	if site.Host < 0 {
		return err
	}
	return errors.Join(err, attach.Release(ctx, site, job))
}

// Sweep takes back the VFs and addresses of jobs that have ended. It returns nil if no job ever had a network on this
// node. An empty state directory does not prove that if there is a network.toml: a reboot empties it, and addresses in
// shared directories stay leased.
func (n Node) Sweep(ctx context.Context, alive func(job string) bool) (*attach.Swept, error) {
	if isMissing(attach.StateDir(n.State)) && isMissing(n.Config) {
		return nil, nil
	}
	site, end, err := n.openSiteToSweep()
	defer end()
	if site.Host < 0 {
		return nil, err
	}
	swept, sweepErr := attach.Sweep(ctx, site, alive)
	return swept, errors.Join(err, sweepErr)
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

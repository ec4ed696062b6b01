// SPDX-License-Identifier: Apache-2.0

package harness

import "errors"

// UpHead starts a cluster without nodes: munged and slurmctld. The caller names
// the nodes in options.SlurmConf and starts each slurmd itself.
func UpHead(options Options) (*Cluster, error) {
	c, err := newCluster(options)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{c.makeRoot, c.startKeeper, c.initJails, c.startHead} {
		if err := step(); err != nil {
			return nil, errors.Join(err, c.Stop())
		}
	}
	return c, nil
}

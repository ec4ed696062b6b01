// SPDX-License-Identifier: Apache-2.0

package network

import (
	"context"
	"fmt"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/slurm"
)

// scontrolTimeout is the timeout for slurmctld's answer.
const scontrolTimeout = 30 * time.Second

// showNode returns what slurmctld has of a node. An empty conf leaves it to scontrol to find slurm.conf.
func showNode(ctx context.Context, c *config.Config, conf, name string) (*slurm.Record, error) {
	path := node.FindSlurmCommand(c, "scontrol")
	if path == "" {
		return nil, fmt.Errorf("cannot ask slurmctld for the node %s: this machine has no scontrol; install Slurm's "+
			"client commands, or name their directory in gojail.toml (slurm.host)", name)
	}
	record, err := slurm.ShowNode(ctx, slurm.Program{
		Command: command.Command{Path: path, Args: []string{"--all", "--future"}}, Conf: conf, Timeout: scontrolTimeout,
	}, name)
	if err != nil {
		err = fmt.Errorf("cannot ask slurmctld for the node %s: %w", name, err)
	}
	return record, err
}

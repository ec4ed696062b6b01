// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/command"
	"github.com/gojail/gojail/internal/slurmconf"
)

// scontrolTimeout is the timeout for slurmctld's answer.
const scontrolTimeout = 30 * time.Second

// showNode returns what slurmctld has of a node, as scontrol prints it. With an error it returns what scontrol printed,
// if anything. An empty conf leaves it to scontrol to find slurm.conf.
func showNode(ctx context.Context, c *config.Config, conf, name string) (string, error) {
	path := node.FindSlurmCommand(c, "scontrol")
	if path == "" {
		return "", fmt.Errorf("cannot ask slurmctld for the node %s: this machine has no scontrol; install Slurm's client commands, or name their directory in gojail.toml (slurm.host)", name)
	}
	ctx, cancel := context.WithTimeout(ctx, scontrolTimeout)
	defer cancel()
	text, err := command.Run(ctx, command.Command{Path: path, Args: []string{"--all", "--future", "--oneliner", "show", "node", name}, Env: slurmconf.Environment(conf)})
	if err != nil {
		err = fmt.Errorf("cannot ask slurmctld for the node %s: %w", name, err)
	}
	return text, err
}

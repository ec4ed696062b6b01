// SPDX-License-Identifier: Apache-2.0

// Package cli has the commands of gojail, the administrator's command: it checks the node and the configuration,
// prepares jails and VFs, shows what jobs use, and cleans up after them.
package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/cli/inside"
	"github.com/gojail/gojail/gojail/cli/jail"
	"github.com/gojail/gojail/gojail/cli/network"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/tomlfile"
)

// Execute runs the command line of this process, prints the error, and returns the exit code.
func Execute() int {
	err := NewCommand().Execute()
	var code cmdline.SilentExit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	for _, line := range formatError(err) {
		fmt.Fprintln(os.Stderr, "gojail:", line)
	}
	return 1
}

// NewCommand returns the command with all commands below it.
func NewCommand() *cobra.Command { return newCommand(&localNode{}) }

// formatError returns an error as lines for a terminal. It may quote names that users have chosen, or the answer of a
// registry.
func formatError(err error) (lines []string) {
	for _, line := range tomlfile.List(err) {
		if os.Geteuid() == 0 {
			line = check.ForAdministrator(line)
		}
		if strings.HasPrefix(line, "unknown command ") {
			line = strings.Replace(line, "\n\nDid you mean this?\n", "; similar:", 1) // cobra's findSuggestions
			line = strings.Join(strings.Fields(line), " ") + "; see: gojail --help"
		}
		lines = append(lines, oneline.Safe(line))
	}
	return lines
}

// localNode is the node that the global flags name, with the commands of this package.
type localNode struct{ cmdline.Node }

func newCommand(n *localNode) *cobra.Command {
	root := &cobra.Command{
		Use:   "gojail",
		Short: "Check, prepare and inspect the jails of this node",
		Long: `gojail manages the jails of one node: root file systems that the steps of Slurm
jobs run in. Users choose one with "srun --jail=NAME"; this command is for the
administrator. gojail.toml describes the jails.

First steps:
  1. write /etc/gojail/gojail.toml (gojail.toml.example explains every key)
  2. gojail init NAME     create the mount targets in the jail, once for all nodes
  3. gojail check         find what would make a job fail, on each node
  4. gojail run NAME      run a shell in the jail, without Slurm
  5. write plugstack.conf on all nodes and submit hosts (plugstack.conf.example)
  6. restart slurmd on the nodes
  7. once all nodes have gojail, add Prolog=/usr/lib/gojail/prolog-1 to slurm.conf

The whole procedure is docs/install.md, in /usr/share/doc/gojail of the package.`,
		Version:           formatVersion(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmdline.IsCompletion(cmd) { // the flags of the command line are not parsed yet
				return nil
			}
			return n.FillDefaults(cmd)
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see: %s --help", err, cmd.CommandPath())
	})
	flags := root.PersistentFlags()
	flags.StringVar(&n.Config, "config", contract.DefaultConfig, "the configuration file")
	flags.StringVar(&n.Network, "network", "",
		"the configuration file of jobs' networks (default: network.toml beside --config)")
	flags.StringVar(&n.State, "state", "",
		"the state directory; %n is the node's name (default: from plugstack.conf, or "+contract.DefaultState+")")
	flags.StringVar(&n.Name, "node", "",
		"the name of this node in slurm.conf (default: the host name up to the first dot)")
	flags.StringVar(&n.LibDir, "libdir", "",
		"the directory of the plugin (default: ../lib/gojail relative to this command)")
	root.AddCommand(newCheckCommand(n), newInitCommand(n), newLsCommand(n), newSpecCommand(n), newSweepCommand(n),
		newReloadCommand(n), newMetricsCommand(n), newVersionCommand(), jail.NewCommand(&n.Node))
	root.AddCommand(inside.NewCommands(&n.Node)...)
	root.AddCommand(network.NewCommands(&n.Node)...)
	return root
}

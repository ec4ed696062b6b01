// SPDX-License-Identifier: Apache-2.0

// gojail is the administrator's command: it checks the node and the configuration, prepares jails and
// VFs, shows what jobs use, and cleans up after them.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/tomlfile"
	"github.com/gojail/gojail/netsetup/provision"
)

// silentExit is an error that ends the command with an exit code and no message: the reason was printed
// before.
type silentExit int

func (silentExit) Error() string { return "" }

func main() {
	err := newCommand(&localNode{}).Execute()
	var code silentExit
	switch {
	case err == nil:
	case errors.As(err, &code):
		os.Exit(int(code))
	default:
		for _, line := range formatError(err) {
			fmt.Fprintln(os.Stderr, "gojail:", line)
		}
		os.Exit(1)
	}
}

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

// localNode holds the paths and names that the global flags give.
type localNode struct {
	check.Node
	network string            // network.toml
	kernel  *provision.Kernel // of tests; nil: the kernel of this node
}

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
			if isCompletion(cmd) { // the flags of the command line are not parsed yet
				return nil
			}
			return n.fillDefaults(cmd)
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see: %s --help", err, cmd.CommandPath())
	})
	flags := root.PersistentFlags()
	flags.StringVar(&n.Config, "config", contract.DefaultConfig, "the configuration file")
	flags.StringVar(&n.network, "network", "",
		"the configuration file of jobs' networks (default: network.toml beside --config)")
	flags.StringVar(&n.State, "state", "",
		"the state directory; %n is the node's name (default: from plugstack.conf, or "+contract.DefaultState+")")
	flags.StringVar(&n.Name, "node", "",
		"the name of this node in slurm.conf (default: the host name up to the first dot)")
	flags.StringVar(&n.LibDir, "libdir", "",
		"the directory of the plugin (default: ../lib/gojail relative to this command)")
	root.AddCommand(newCheckCommand(n), newInitCommand(n), newRunCommand(n), newEnterCommand(n), newLsCommand(n),
		newSpecCommand(n),
		newSweepCommand(n), newReloadCommand(n), newMetricsCommand(n), newJailCommand(n), newVFCommand(n),
		newPoolCommand(n), newGresCommand(n), newNodeConfCommand(n), newNetCommand(n), newVersionCommand())
	return root
}

// fillDefaults sets what the flags do not, and fails where a command needs root.
func (n *localNode) fillDefaults(cmd *cobra.Command) error {
	if n.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("cannot read the host name; give --node: %w", err)
		}
		n.Name, _, _ = strings.Cut(host, ".")
	}
	for _, path := range []*string{&n.Config, &n.network, &n.State, &n.LibDir} {
		if err := makeAbsolute(path); err != nil {
			return err
		}
	}
	if n.Config != contract.DefaultConfig { // some commands can do without the default file
		if _, err := n.loadConfig(); errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if n.network == "" {
		n.network = n.networkPath()
	}
	if n.State == "" {
		n.State = contract.DefaultState
		if c, err := n.loadConfig(); err == nil { // otherwise the command itself reports the error
			n.State = node.PluginState(c)
		}
	}
	n.State = strings.ReplaceAll(n.State, "%n", n.Name)
	if n.LibDir == "" {
		own, err := os.Executable()
		if err == nil {
			own, err = filepath.EvalSymlinks(own)
		}
		if err != nil {
			return fmt.Errorf("cannot determine where gojail is installed; give --libdir: %w", err)
		}
		n.LibDir = filepath.Join(filepath.Dir(own), "..", "lib", "gojail")
	}
	if os.Geteuid() != 0 && cmd.Annotations["anybody"] == "" {
		return fmt.Errorf("%s must be run as root", cmd.CommandPath())
	}
	return nil
}

// makeAbsolute resolves a path of the command line against the working directory.
func makeAbsolute(path *string) error {
	if *path == "" {
		return nil
	}
	full, err := filepath.Abs(*path)
	if err != nil {
		return fmt.Errorf("cannot resolve %s: %w; give the full path", *path, err)
	}
	*path = full
	return nil
}

// isCompletion reports whether a command completes words for the shell or prints help, which needs no
// root.
func isCompletion(cmd *cobra.Command) bool {
	for c := cmd; c != nil; c = c.Parent() {
		if strings.HasPrefix(c.Name(), "completion") || strings.HasPrefix(c.Name(), "__complete") ||
			c.Name() == "help" {
			return true
		}
	}
	return false
}

// loadConfig reads and checks gojail.toml.
func (n *localNode) loadConfig() (*config.Config, error) {
	c, err := node.Load(n.Config, n.Node.Name)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; copy gojail.toml.example there, or name another file with --config", err)
	}
	return c, err
}

// loadJail loads the configuration and finds one jail in it.
func (n *localNode) loadJail(name string) (*config.Config, *config.Jail, error) {
	c, err := n.loadConfig()
	if err != nil {
		return nil, nil, err
	}
	j, err := c.Jail(name)
	return c, j, err
}

// completeJailNames returns the names of the jails for the shell's completion.
func (n *localNode) completeJailNames(cmd *cobra.Command, args []string, _ string) ([]string,
	cobra.ShellCompDirective) {
	if len(args) > 0 || n.fillDefaults(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := n.loadConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.JailNames(), cobra.ShellCompDirectiveNoFileComp
}

// takeNoArgument refuses arguments, with the reason.
func takeNoArgument(why string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("%s takes no argument: %s", cmd.CommandPath(), why)
		}
		return nil
	}
}

// takeUpToOneArgument refuses more than one argument, which what describes.
func takeUpToOneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("%s takes one argument at most: %s; see: %[1]s --help", cmd.CommandPath(), what)
		}
		return nil
	}
}

// takeOneArgument refuses any number of arguments but one, which what describes.
func takeOneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s needs one argument: %s; see: %[1]s --help", cmd.CommandPath(), what)
		}
		return nil
	}
}

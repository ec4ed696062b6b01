// SPDX-License-Identifier: Apache-2.0

// gojail is the administrator's command: it checks, prepares, shows and cleans
// up what the Slurm plugin works with on one node.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/tomlfile"
	"github.com/gojail/gojail/netsetup/provision"
)

// silent ends with an exit code and without a message: the reason was printed.
type silent int

func (silent) Error() string { return "" }

func main() {
	err := command(&localNode{}).Execute()
	var code silent
	switch {
	case err == nil:
	case errors.As(err, &code):
		os.Exit(int(code))
	default:
		for _, line := range tomlfile.List(err) {
			if os.Geteuid() == 0 {
				line = check.ForAdministrator(line)
			}
			fmt.Fprintln(os.Stderr, "gojail:", line)
		}
		os.Exit(1)
	}
}

// node is where things are, from the global flags.
type localNode struct {
	check.Node
	network string            // network.toml
	kernel  *provision.Kernel // of tests; nil: this node's own
}

func command(n *localNode) *cobra.Command {
	root := &cobra.Command{
		Use:   "gojail",
		Short: "Check, prepare and look at the jails of this node",
		Long: `gojail looks after the jails of one node: root file systems that the steps of
Slurm jobs run in. Users choose one with "srun --jail=NAME"; this command is for
the administrator. The jails are described in gojail.toml.

To begin with:
  1. write /etc/gojail/gojail.toml (gojail.toml.example explains every key)
  2. gojail init NAME     make the mount targets in the jail, once for all nodes
  3. gojail check         find what would make a job fail, on each node
  4. gojail run NAME      have a look around inside, without Slurm
  5. write plugstack.conf on all nodes and submit hosts (plugstack.conf.example)
  6. restart slurmd on the nodes`,
		Version:           version(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return n.prepare(cmd) },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	flags := root.PersistentFlags()
	flags.StringVar(&n.Config, "config", contract.DefaultConfig, "the configuration")
	flags.StringVar(&n.network, "network", "", "the configuration of jobs' networks (default: network.toml beside --config)")
	flags.StringVar(&n.State, "state", "", "state directory; %n: the node's name (default: as plugstack.conf gives it, or "+contract.DefaultState+")")
	flags.StringVar(&n.Name, "node", "", "name of this node in slurm.conf (default: the host name up to the first dot)")
	flags.StringVar(&n.LibDir, "libdir", "", "where the plugin is installed (default: ../lib/gojail from this command)")
	root.AddCommand(checkCommand(n), initCommand(n), runCommand(n), enterCommand(n), lsCommand(n), specCommand(n),
		sweepCommand(n), reloadCommand(n), vfCommand(n), gresCommand(n), netCommand(n), versionCommand())
	return root
}

// prepare fills in what the flags leave open.
func (n *localNode) prepare(cmd *cobra.Command) error {
	if n.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("this node has no host name; give --node: %w", err)
		}
		n.Name, _, _ = strings.Cut(host, ".")
	}
	for _, path := range []*string{&n.Config, &n.network, &n.State, &n.LibDir} {
		if err := makeAbsolute(path); err != nil {
			return err
		}
	}
	if n.network == "" {
		n.network = n.besideConfig()
	}
	if n.State == "" {
		n.State = contract.DefaultState
		if c, err := n.load(); err == nil { // else the command itself says why
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
			return fmt.Errorf("cannot find out where gojail is installed; give --libdir: %w", err)
		}
		n.LibDir = filepath.Join(filepath.Dir(own), "..", "lib", "gojail")
	}
	if os.Geteuid() != 0 && cmd.Annotations["anybody"] == "" && !completes(cmd) {
		return fmt.Errorf("%s needs root", cmd.CommandPath())
	}
	return nil
}

// makeAbsolute turns a path that was typed in the working directory into a full one.
func makeAbsolute(path *string) error {
	if *path == "" {
		return nil
	}
	full, err := filepath.Abs(*path)
	if err != nil {
		return fmt.Errorf("cannot find out what %s means: %w; give the full path", *path, err)
	}
	*path = full
	return nil
}

func completes(cmd *cobra.Command) bool {
	for c := cmd; c != nil; c = c.Parent() {
		if strings.HasPrefix(c.Name(), "completion") || strings.HasPrefix(c.Name(), "__complete") || c.Name() == "help" {
			return true
		}
	}
	return false
}

func (n *localNode) load() (*config.Config, error) { return node.Load(n.Config, n.Node.Name) }

// jail loads the configuration and finds one jail in it.
func (n *localNode) jail(name string) (*config.Config, *config.Jail, error) {
	c, err := n.load()
	if err != nil {
		return nil, nil, err
	}
	j, err := c.Jail(name)
	return c, j, err
}

// jailNames completes the name of a jail in the shell.
func (n *localNode) jailNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || n.prepare(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := n.load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.JailNames(), cobra.ShellCompDirectiveNoFileComp
}

// none wants no argument, and says why.
func none(why string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("%s takes no argument: %s", cmd.CommandPath(), why)
		}
		return nil
	}
}

// one wants exactly one argument, and says what it is.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s needs one argument: %s; see: %[1]s --help", cmd.CommandPath(), what)
		}
		return nil
	}
}

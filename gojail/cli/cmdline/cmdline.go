// SPDX-License-Identifier: Apache-2.0

// Package cmdline is what gojail's commands share: the global flags and the node that they name, arguments, exit codes,
// JSON.
package cmdline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/check"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	network "github.com/gojail/gojail/netsetup/config"
	"github.com/gojail/gojail/netsetup/provision"
)

// Node holds the paths and names that the global flags give.
type Node struct {
	check.Node
	Network string            // network.toml
	Kernel  *provision.Kernel // of tests; nil: the kernel of this node
}

// SilentExit is an error that ends the command with an exit code and no message: the reason was printed
// before.
type SilentExit int

func (SilentExit) Error() string { return "" }

// FillDefaults sets what the flags do not set, and fails if a command needs root.
func (n *Node) FillDefaults(cmd *cobra.Command) error {
	if n.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("cannot read the host name; give --node: %w", err)
		}
		n.Name, _, _ = strings.Cut(host, ".")
	}
	for _, path := range []*string{&n.Config, &n.Network, &n.State, &n.LibDir} {
		if err := MakeAbsolute(path); err != nil {
			return err
		}
	}
	if n.Config != contract.DefaultConfig { // some commands can do without the default file
		if _, err := n.LoadConfig(); errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if n.Network == "" {
		n.Network = n.NetworkPath()
	}
	if n.State == "" {
		n.State = contract.DefaultState
		if c, err := n.LoadConfig(); err == nil { // otherwise the command itself reports the error
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

// MakeAbsolute resolves a path of the command line against the working directory.
func MakeAbsolute(path *string) error {
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

// NetworkPath returns the path where the plugin looks for network.toml: beside gojail.toml.
func (n *Node) NetworkPath() string {
	return filepath.Join(filepath.Dir(n.Config), filepath.Base(network.DefaultPath))
}

// IsCompletion reports whether a command completes words for the shell or prints help, which needs no
// root.
func IsCompletion(cmd *cobra.Command) bool {
	for c := cmd; c != nil; c = c.Parent() {
		if strings.HasPrefix(c.Name(), "completion") || strings.HasPrefix(c.Name(), "__complete") ||
			c.Name() == "help" {
			return true
		}
	}
	return false
}

// LoadConfig reads and checks gojail.toml.
func (n *Node) LoadConfig() (*config.Config, error) {
	c, err := node.Load(n.Config, n.Node.Name)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; copy gojail.toml.example there, or name another file with --config", err)
	}
	return c, err
}

// LoadJail loads the configuration and finds one jail in it.
func (n *Node) LoadJail(name string) (*config.Config, *config.Jail, error) {
	c, err := n.LoadConfig()
	if err != nil {
		return nil, nil, err
	}
	j, err := c.Jail(name)
	return c, j, err
}

// CompleteJailNames returns the names of the jails for the shell's completion.
func (n *Node) CompleteJailNames(cmd *cobra.Command, args []string, _ string) ([]string,
	cobra.ShellCompDirective) {
	if len(args) > 0 || n.FillDefaults(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, err := n.LoadConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.JailNames(), cobra.ShellCompDirectiveNoFileComp
}

// TakeNoArgument refuses arguments, with the reason.
func TakeNoArgument(why string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("%s takes no argument: %s", cmd.CommandPath(), why)
		}
		return nil
	}
}

// TakeUpToOneArgument refuses more than one argument, which what describes.
func TakeUpToOneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("%s takes one argument at most: %s; see: %[1]s --help", cmd.CommandPath(), what)
		}
		return nil
	}
}

// TakeOneArgument refuses any number of arguments but one, which what describes.
func TakeOneArgument(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("%s needs one argument: %s; see: %[1]s --help", cmd.CommandPath(), what)
		}
		return nil
	}
}

// PrintJSON writes a value as indented JSON.
func PrintJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// FormatTime returns a time for a table.
func FormatTime(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Format(time.DateTime)
}

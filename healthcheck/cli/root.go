// SPDX-License-Identifier: Apache-2.0

// Package cli has the commands of gojail-healthcheck, the HealthCheckProgram of a node: it checks the node, and drains
// and undrains it in Slurm.
package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/checks"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/drain"
	"github.com/gojail/gojail/healthcheck/run"
	"github.com/gojail/gojail/internal/oneline"
	"github.com/gojail/gojail/internal/procfs"
	"github.com/gojail/gojail/internal/version"
)

// exitCode is an error that sets the exit code and has no message.
type exitCode int

func (exitCode) Error() string { return "" }

// exitUnknown is the exit code of a run that could not check the node (Nagios).
const exitUnknown = 3

// NewCommand returns the command with all commands below it.
func NewCommand() *cobra.Command { return newRootCommand(&node{}) }

// Execute runs the command line of this process, prints the error, and returns the exit code.
func Execute() int {
	n := &node{controlled: isControlled()}
	n.supervised = !n.controlled
	exit := exitCode(0)
	if err := newRootCommand(n).Execute(); err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, "gojail-healthcheck:", oneline.Safe(err.Error()))
		exit = exitUnknown
	}
	if n.controlled {
		_ = sendMessage(message{tellsExit, int64(exit)}, nil)
	}
	return int(exit)
}

// node holds the flags.
type node struct {
	config    string
	name      string
	slurmd    bool // whether slurmd started this run
	dry, json bool
	// supervised: the run must be started by supervise; controlled: this process is that run.
	supervised, controlled bool
	roots                  check.Roots
	log                    string
	runDir                 string // the node's own directories
	stateDir               string
}

func newRootCommand(n *node) *cobra.Command {
	root := &cobra.Command{
		Use:   "gojail-healthcheck",
		Short: "Check whether this node is fit for jobs, and drain or undrain it in Slurm",
		Long: `gojail-healthcheck is the program for HealthCheckProgram in slurm.conf. It runs all
checks in parallel, drains the node if a check of severity drain fails, and undrains
a node that it drained itself once the check is good again. It never changes a node
whose reason was set by somebody else.

The exit code is 0 if all checks are good, 1 for a warning, 2 for a fault that drains
the node, 3 if a check could not determine its result. slurmd logs the output of a
program whose exit code is not 0; when started by slurmd, gojail-healthcheck therefore
prints little, and exits with 0 if nothing has changed.`,
		Example: `  gojail-healthcheck --dry-run
  gojail-healthcheck explain memory`,
		Args:              cobra.NoArgs,
		Version:           version.Text(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !n.supervised {
				return n.runHealthCheck(cmd)
			}
			exit, err := supervise(os.Args[1:])
			if err == nil && exit != 0 {
				err = exitCode(exit)
			}
			return err
		},
	}
	n.roots, n.log = check.NodeRoots(), "/dev/log"
	root.SetVersionTemplate("gojail-healthcheck {{.Version}}\n")
	flags := root.PersistentFlags()
	flags.StringVar(&n.config, "config", config.DefaultPath, "configuration file; may be absent")
	flags.StringVar(&n.name, "node", "",
		"name of this node in slurm.conf (default: $SLURMD_NODENAME, else the host name up to the first dot)")
	root.Flags().BoolVar(&n.dry, "dry-run", false,
		"run the checks and report; nothing is changed or stored, so that each failure counts as the first one")
	root.Flags().BoolVar(&n.json, "json", false, "write JSON")
	root.AddCommand(newListCommand(n), newNCCLCommand(n), newExplainCommand(n), newForgetCommand(n), newChildCommand())
	return root
}

// loadConfig determines the node's name and loads the configuration.
func (n *node) loadConfig(cmd *cobra.Command) (*config.Config, error) {
	if n.name == "" {
		n.name = os.Getenv("SLURMD_NODENAME")
		n.slurmd = n.name != ""
	}
	if n.name == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("cannot determine the host name of this node; pass --node: %w", err)
		}
		n.name, _, _ = strings.Cut(host, ".")
	}
	c, err := config.Load(n.config, n.name, checks.Names())
	if errors.Is(err, fs.ErrNotExist) && !cmd.Flags().Changed("config") {
		c, err = config.Defaults(), nil
	}
	if err != nil {
		return nil, err
	}
	if n.name == "" || filepath.Base(n.name) != n.name || n.name == "." || n.name == ".." {
		return nil, fmt.Errorf("%.60q is not a node name; pass the name in slurm.conf with --node", n.name)
	}
	n.runDir, n.stateDir = nodeDirectory(c.Run, n.name), nodeDirectory(c.State, n.name)
	c.Run, c.State = strings.ReplaceAll(c.Run, "%n", n.name), strings.ReplaceAll(c.State, "%n", n.name)
	c.Metrics, c.NCCL.Metrics = strings.ReplaceAll(c.Metrics, "%n", n.name), strings.ReplaceAll(c.NCCL.Metrics, "%n",
		n.name)
	return c, nil
}

// nodeDirectory returns the directory for a node's state: each slurmd on a machine with several
// has its own counts and drains, even if the path does not name the node.
func nodeDirectory(path, name string) string {
	if strings.Contains(path, "%n") {
		return strings.ReplaceAll(path, "%n", name)
	}
	return filepath.Join(path, "nodes", name)
}

// openStore returns the node's own store, with the files that an earlier version left in the
// directories above it. Of several nodes the first one adopts them: a drain counts only where
// Slurm shows it. A dry run creates and moves nothing.
func (n *node) openStore(c *config.Config) (drain.Store, error) {
	store, earlier := drain.Store{Run: n.runDir, State: n.stateDir}, drain.Store{Run: c.Run, State: c.State}
	if n.dry {
		return store.Preview(earlier), nil
	}
	if err := store.Prepare(); err != nil {
		return store, err
	}
	return store, store.Adopt(earlier)
}

func newChildCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "child",
		Short:  "Run checks (started by gojail-healthcheck itself)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = procfs.SetName("gojail-health") // for those who look at processes
			return run.Serve(checks.All(), cmd.InOrStdin(), cmd.OutOrStdout(), run.LockFD)
		},
	}
}

// requireCheckName returns an error unless args is the name of one check.
func requireCheckName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s requires the name of a check; see: gojail-healthcheck list", cmd.Name())
	}
	return nil
}

// loadConfigAsRoot is loadConfig for a command of root.
func (n *node) loadConfigAsRoot(cmd *cobra.Command) (*config.Config, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%s must be run as root", cmd.CommandPath())
	}
	return n.loadConfig(cmd)
}

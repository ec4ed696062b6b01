// SPDX-License-Identifier: Apache-2.0

// gojail-healthcheck is the HealthCheckProgram of a node: it looks, and drains and
// undrains the node in Slurm.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	jailconfig "github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/checks"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/drain"
	"github.com/gojail/gojail/healthcheck/report"
	"github.com/gojail/gojail/healthcheck/run"
)

// code ends with an exit code and without a message.
type code int

func (code) Error() string { return "" }

// unknown is the exit code of a run that could not look (Nagios).
const unknown = 3

func main() {
	n := &node{controlled: controlled()}
	n.supervised = !n.controlled
	exit := code(0)
	if err := command(n).Execute(); err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, "gojail-healthcheck:", err)
		exit = unknown
	}
	if n.controlled {
		_ = tell(message{tellsExit, int64(exit)}, nil)
	}
	os.Exit(int(exit))
}

// node is what the flags say.
type node struct {
	config    string
	name      string
	slurmd    bool // started by slurmd
	dry, json bool
	// supervised: a run is to be started by supervise; controlled: this is that run.
	supervised, controlled bool
	roots                  check.Roots
	log                    string
	runDir                 string // the directories of the node itself
	stateDir               string
}

func command(n *node) *cobra.Command {
	root := &cobra.Command{
		Use:   "gojail-healthcheck",
		Short: "Find out whether this node is fit for jobs, and tell Slurm",
		Long: `gojail-healthcheck is for HealthCheckProgram in slurm.conf. It looks at the node
with all its checks at once, drains the node if one fails that is worth it, and
undrains what it drained itself once that is mended. A reason that somebody else
set is left alone.

The exit code is 0 if all is well, 1 for a warning, 2 for a fault that drains the
node, 3 if something could not be found out. Started by slurmd, which puts in its
log what comes with another code than 0, it is brief, and 0 if nothing is new.`,
		Example: `  gojail-healthcheck --dry-run
  gojail-healthcheck explain memory`,
		Args:              cobra.NoArgs,
		Version:           jailconfig.Version,
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !n.supervised {
				return n.look(cmd)
			}
			exit, err := supervise(os.Args[1:])
			if err == nil && exit != 0 {
				err = code(exit)
			}
			return err
		},
	}
	n.roots, n.log = check.NodeRoots(), "/dev/log"
	root.SetVersionTemplate("gojail-healthcheck {{.Version}}\n")
	flags := root.PersistentFlags()
	flags.StringVar(&n.config, "config", config.DefaultPath, "the configuration; need not be there")
	flags.StringVar(&n.name, "node", "", "name of this node in slurm.conf (default: $SLURMD_NODENAME, else the host name up to the first dot)")
	root.Flags().BoolVar(&n.dry, "dry-run", false, "look, and say what is wrong; nothing is changed or remembered, so that each failure is the first one")
	root.Flags().BoolVar(&n.json, "json", false, "write JSON")
	root.AddCommand(listCommand(n), ncclCommand(n), explainCommand(n), forgetCommand(n), childCommand())
	return root
}

// load finds out the node's name and reads the configuration.
func (n *node) load(cmd *cobra.Command) (*config.Config, error) {
	if n.name == "" {
		n.name = os.Getenv("SLURMD_NODENAME")
		n.slurmd = n.name != ""
	}
	if n.name == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("this node has no host name; give --node: %w", err)
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
		return nil, fmt.Errorf("%.60q is not the name of a node; give the one in slurm.conf with --node", n.name)
	}
	n.runDir, n.stateDir = ownDirectory(c.Run, n.name), ownDirectory(c.State, n.name)
	c.Run, c.State = strings.ReplaceAll(c.Run, "%n", n.name), strings.ReplaceAll(c.State, "%n", n.name)
	c.Metrics = strings.ReplaceAll(c.Metrics, "%n", n.name)
	return c, nil
}

// ownDirectory returns where a node remembers what it saw: each slurmd of a machine that has
// several has its own counts and drains, also where the path does not name the node.
func ownDirectory(path, name string) string {
	if strings.Contains(path, "%n") {
		return strings.ReplaceAll(path, "%n", name)
	}
	return filepath.Join(path, "nodes", name)
}

// store returns the node's own store, with what an earlier version left in the directories
// above it. Of several nodes the first takes that: a drain counts only where Slurm shows it.
func (n *node) store(c *config.Config) (drain.Store, error) {
	store := drain.Store{Run: n.runDir, State: n.stateDir}
	if err := store.Prepare(); err != nil {
		return store, err
	}
	return store, store.Adopt(drain.Store{Run: c.Run, State: c.State})
}

func childCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "child",
		Short:  "Do checks that can hang, for gojail-healthcheck itself",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run.Serve(service(), cmd.InOrStdin(), cmd.OutOrStdout(), run.LockFD)
		},
	}
}

// What a child writes, as its lock file says.
const (
	writeRecord  = "record"
	writeMetrics = "metrics"
)

// service is what children do.
func service() run.Service {
	return run.Service{
		Checks: checks.All(),
		Writes: map[string]func(string, []byte) error{writeRecord: drain.Keep, writeMetrics: report.Replace},
	}
}

// oneCheck wants the name of a check, as args.
func oneCheck(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s needs the name of a check; see: gojail-healthcheck list", cmd.Name())
	}
	return nil
}

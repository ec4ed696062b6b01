// SPDX-License-Identifier: Apache-2.0

// Package jail has the commands of gojail about versions of jails.
package jail

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/gojail/unpack"
	"github.com/gojail/gojail/internal/oneline"
)

// jailCommand holds the flags of all commands about versions of jails.
type jailCommand struct {
	*cmdline.Node
	store string
}

// NewCommand returns the command with all commands about versions of jails.
func NewCommand(n *cmdline.Node) *cobra.Command {
	j := &jailCommand{Node: n}
	cmd := &cobra.Command{
		Use:   "jail",
		Short: "Build, switch, roll back and remove versions of jails",
		Long: `A store is a directory on shared storage with versions of jails. A version is
built from an image, an archive or a directory, beside the others, and is never
changed. A switch makes it the one that new jobs get; running jobs keep theirs.

gojail.toml names the store (store = "/shared/jails") and the jails that come
from it (root = "store:debian"). docs/jails.md has the procedures.`,
		Example: `  gojail jail build debian --from oci:/images/debian:13
  gojail jail switch debian
  gojail jail rollback debian`,
		Annotations: map[string]string{"anybody": "yes"},
		Args:        cobra.NoArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&j.store, "store", "", "the directory of the store (default: store of gojail.toml)")
	cmd.AddCommand(newJailBuildCommand(j), newJailLsCommand(j), newJailSwitchCommand(j), newJailRollbackCommand(j),
		newJailEditCommand(j), newJailVerifyCommand(j),
		newJailRmCommand(j), newJailGCCommand(j), newUnpackCommand())
	return cmd
}

// unpackName is the command that runs in the child processes of a build.
const unpackName = "unpack-child"

// unpackSelf is the command line of unpack.Tree.
var unpackSelf = []string{"/proc/self/exe", "jail", unpackName}

func newUnpackCommand() *cobra.Command {
	return &cobra.Command{
		Use:               unpackName,
		Hidden:            true,
		Args:              cobra.ExactArgs(1),
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil }, // it reads no configuration
		Run:               func(_ *cobra.Command, args []string) { unpack.Child(args[0]) },
	}
}

// openStore opens the store that the flag or gojail.toml names.
func (j *jailCommand) openStore() (*store.Store, error) {
	dir := j.store
	if dir == "" {
		c, err := j.LoadConfig()
		if err != nil {
			return nil, err
		}
		if dir = c.Store; dir == "" {
			return nil, fmt.Errorf(`%s names no store; write store = "/shared/jails", or give --store`, c.Path)
		}
	}
	if err := cmdline.MakeAbsolute(&dir); err != nil {
		return nil, err
	}
	return store.Open(dir)
}

// openStoreForChange removes what killed edits left on this node, and opens the store. What cannot be removed hinders
// no change.
func (j *jailCommand) openStoreForChange(cmd *cobra.Command) (*store.Store, error) {
	if _, err := SweepEdits(); err != nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "gojail:", oneline.Printable(err.Error()))
	}
	return j.openStore()
}

// openJailForChange is openStoreForChange for a jail that the store has.
func (j *jailCommand) openJailForChange(cmd *cobra.Command, name string) (*store.Jail, error) {
	s, err := j.openStoreForChange(cmd)
	if err != nil {
		return nil, err
	}
	return s.Jail(name)
}

// openJail opens a jail that the store has.
func (j *jailCommand) openJail(name string) (*store.Jail, error) {
	s, err := j.openStore()
	if err != nil {
		return nil, err
	}
	return s.Jail(name)
}

// takeJailAndVersion accepts the name of a jail and then a version, which may be missing unless it is required.
func takeJailAndVersion(required bool) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case required && len(args) != 2:
			return fmt.Errorf("%s needs two arguments, the name of a jail and a version; see: %[1]s --help",
				cmd.CommandPath())
		case len(args) == 0 || len(args) > 2:
			return fmt.Errorf("%s needs the name of a jail, and takes a version; see: %[1]s --help", cmd.CommandPath())
		}
		return nil
	}
}

// completeStored completes the name of a jail of the store, then of its versions.
func (j *jailCommand) completeStored(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var words []string
	if s, err := j.openStore(); j.FillDefaults(cmd) == nil && err == nil {
		switch len(args) {
		case 0:
			jails, _ := s.Jails()
			for _, jail := range jails {
				words = append(words, jail.Name)
			}
		case 1:
			if jail, err := s.Jail(args[0]); err == nil {
				versions, _ := jail.Versions()
				for _, v := range versions {
					words = append(words, v.Version)
				}
			}
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// findAuthor returns the user who runs this command, for the records.
func findAuthor() string {
	name := os.Getenv("SUDO_USER")
	if u, err := user.Current(); name == "" && err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}

// interruptible returns a context that ends by Ctrl-C, or when the command is terminated. A second signal ends the
// command: it may wait for storage that does not answer.
func interruptible(cmd *cobra.Command) (context.Context, func()) {
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		if s, open := <-signals; open {
			signal.Stop(signals)
			cancel(fmt.Errorf("ended by signal: %s", s))
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}

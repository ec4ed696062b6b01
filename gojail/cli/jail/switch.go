// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/lease"
	"github.com/gojail/gojail/gojail/state"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/oneline"
)

func newJailSwitchCommand(j *jailCommand) *cobra.Command {
	return &cobra.Command{
		Use:   "switch NAME [VERSION]",
		Short: "Make a version the one that new jobs get",
		Long: `Makes a version of the jail current, by one rename; without VERSION the newest.
The beginning of its name is enough. Running jobs keep the version they have.
On NFS a node sees the switch within 60 s by default (acdirmax).

It prints which templates and jobs still have the previous version, according to
the leases of the nodes, with the time of each: a node writes its lease when a
template is made and when its health is checked. Jobs that began since are not in
it; "gojail jail ls NAME --json" lists the uses at a later time.`,
		Example: `  gojail jail switch debian
  gojail jail switch debian 20261124-1523`,
		Args:              takeJailAndVersion(false),
		ValidArgsFunction: j.completeStored,
		RunE: func(cmd *cobra.Command, args []string) error {
			version := ""
			if len(args) > 1 {
				version = args[1]
			}
			return j.move(cmd, args[0], func(ctx context.Context, jail *store.Jail) (store.Moved, error) {
				return jail.SwitchTo(ctx, version, findAuthor())
			})
		},
	}
}

func newJailRollbackCommand(j *jailCommand) *cobra.Command {
	return &cobra.Command{
		Use:   "rollback NAME",
		Short: "Switch back to the previous version",
		Long: `Makes the version current that was current before the last switch. A second
rollback goes one version further back. Removed versions are skipped.`,
		Example:           `  gojail jail rollback debian`,
		Args:              cmdline.TakeOneArgument("the name of a jail"),
		ValidArgsFunction: j.completeStored,
		RunE: func(cmd *cobra.Command, args []string) error {
			return j.move(cmd, args[0], func(ctx context.Context, jail *store.Jail) (store.Moved, error) {
				return jail.Rollback(ctx, findAuthor())
			})
		},
	}
}

func (j *jailCommand) move(cmd *cobra.Command, name string, do func(context.Context, *store.Jail) (store.Moved,
	error)) error {
	jail, err := j.openJailForChange(cmd, name)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	moved, err := do(ctx, jail)
	if err == nil {
		printMoved(cmd.OutOrStdout(), name, moved)
		j.printUsers(cmd.OutOrStdout(), jail, moved)
	}
	return err
}

func printMoved(w io.Writer, name string, moved store.Moved) {
	to := store.ID(moved.To)
	switch moved.From {
	case moved.To:
		fmt.Fprintf(w, "version %s of jail %s is current already\n", to, name)
	case "":
		fmt.Fprintf(w, "jail %s: version %s is current\n", name, to)
	default:
		fmt.Fprintf(w, "jail %s: version %s is current, it was %s\n", name, to, store.ID(moved.From))
	}
}

// printUsers prints the uses of the version that was current before, by the leases of the nodes. If this machine is a
// node, it writes its own lease first.
func (j *jailCommand) printUsers(w io.Writer, jail *store.Jail, moved store.Moved) {
	if moved.From == "" || moved.From == moved.To {
		return
	}
	v, err := jail.Version(store.ID(moved.From))
	if err != nil {
		return // removed before the switch
	}
	s, err := j.openStore()
	if err != nil {
		return
	}
	j.refreshOwnLease()
	u, err := s.Survey(store.Cluster{}, store.DefaultExpiry)
	if err != nil {
		fmt.Fprintln(w, oneline.Printable(err.Error()))
		return
	}
	for _, user := range u.DatedUsers(v) {
		fmt.Fprintf(w, "still has %s: %s\n", v.Version, oneline.Printable(user))
	}
}

// leasePatience is how long the store has to answer.
const leasePatience = 10 * time.Second

// refreshOwnLease writes the lease of this node, so that it names jobs that began since. A failure makes the answer
// older, which its time shows.
func (j *jailCommand) refreshOwnLease() {
	c, err := j.LoadConfig()
	if err != nil {
		return
	}
	if _, err := os.Lstat(j.State); err != nil {
		return // no node
	}
	s, err := state.OpenState(j.State)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leasePatience)
	defer cancel()
	lease.RefreshWritten(ctx, s, c)
}

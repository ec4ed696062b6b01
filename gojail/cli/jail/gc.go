// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/oneline"
)

// collectedJail is a jail as gojail jail gc --json prints it.
type collectedJail struct {
	Name    string   `json:"name"`
	Removed []string `json:"removed"`
	Kept    []kept   `json:"kept"`
}

type kept struct {
	Version string `json:"version"`
	Why     string `json:"why"`
}

func newJailGCCommand(j *jailCommand) *cobra.Command {
	var nodes nodesFlags
	var keep int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "gc [NAME]",
		Short: "Remove versions of jails that no node and no job uses",
		Long: `Removes versions of the jail, without NAME of all jails, that no node and no job
uses, and prints why it keeps the others. It keeps the current version, those
built after it that were not in use yet, and beside these --keep versions: first
those that a rollback goes to, then the newest.

Each node writes to the store what its templates and jobs use: its lease. A
version is removed if each node wrote a lease after the last switch, and none
names it. If a node that Slurm knows has not, nothing is removed, and the node is
printed; "gojail sweep" on that node writes one. A lease that is older than --expire
counts as none, unless Slurm reports that the node is up.`,
		Example: `  gojail jail gc
  gojail jail gc debian --keep 0
  gojail jail gc --except login[1-2] --json | jq '.jails[].removed'`,
		Args:              cmdline.TakeUpToOneArgument("the name of a jail"),
		ValidArgsFunction: j.completeStored,
		RunE: func(cmd *cobra.Command, args []string) error {
			if keep < 0 {
				return fmt.Errorf("--keep %d: must not be negative", keep)
			}
			list, err := j.collect(cmd, &nodes, args, keep)
			if list == nil { // nothing was collected
				return err
			}
			if asJSON {
				jails := map[string][]collectedJail{"jails": list}
				return oneline.Both(cmdline.PrintJSON(cmd.OutOrStdout(), jails), err)
			}
			for _, jail := range list {
				for _, version := range jail.Removed {
					fmt.Fprintf(cmd.OutOrStdout(), "removed version %s of jail %s\n", version, jail.Name)
				}
				for _, k := range jail.Kept {
					fmt.Fprintf(cmd.OutOrStdout(), "kept version %s of jail %s: %s\n", k.Version, jail.Name,
						oneline.Printable(k.Why))
				}
			}
			return err
		},
	}
	cmd.Flags().IntVar(&keep, "keep", 2, "how many versions are kept beside the current one")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	nodes.add(cmd)
	return cmd
}

func (j *jailCommand) collect(cmd *cobra.Command, f *nodesFlags, names []string, keep int) ([]collectedJail, error) {
	s, err := j.openStoreForChange(cmd)
	if err != nil {
		return nil, err
	}
	jails, err := selectJails(s, names)
	if err != nil {
		return nil, err
	}
	ctx, stop := interruptible(cmd)
	defer stop()
	cluster, err := j.askSlurm(ctx, f)
	if err != nil {
		return nil, err
	}
	list := []collectedJail{}
	for _, jail := range jails {
		found, e := jail.Collect(ctx, keep, func() (*store.Survey, error) { return s.Survey(cluster, f.expiry) })
		row := collectedJail{Name: jail.Name, Removed: []string{}, Kept: []kept{}}
		for _, c := range found {
			if c.Removed {
				row.Removed = append(row.Removed, c.Version)
			} else {
				row.Kept = append(row.Kept, kept{c.Version, c.Why})
			}
		}
		list, err = append(list, row), oneline.Both(err, e)
	}
	u, e := s.Survey(cluster, f.expiry)
	if e == nil {
		e = s.Tidy(u, f.expiry)
	}
	return list, oneline.Both(err, e)
}

// selectJails returns the jail of that name, or all jails of the store.
func selectJails(s *store.Store, names []string) ([]*store.Jail, error) {
	if len(names) == 0 {
		return s.Jails()
	}
	one, err := s.Jail(names[0])
	if err != nil {
		return nil, err
	}
	return []*store.Jail{one}, nil
}

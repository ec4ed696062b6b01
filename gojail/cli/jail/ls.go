// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/store"
	"github.com/gojail/gojail/internal/oneline"
)

// storedJail is a jail of the store as gojail jail ls --json prints it.
type storedJail struct {
	Name     string          `json:"name"`
	Current  string          `json:"current,omitempty"`
	Versions []storedVersion `json:"versions"`
}

type storedVersion struct {
	store.Record
	Current bool     `json:"current"`
	Users   []string `json:"users"` // nodes and their uses of the version, by their latest leases
	Error   string   `json:"error,omitempty"`

	nodes, jobs int
}

func newJailLsCommand(j *jailCommand) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls [NAME]",
		Short: "List the versions of jails, and which is current",
		Long: `Lists each version in the store with what it was built from, when and by whom.
"*" marks the current version: the one that new jobs get. On NFS, a node sees a
version or a switch of another node when its attribute cache expires, within 60 s
by default (acdirmax).

NODES and JOBS count what uses a version according to the leases of the nodes;
--json has their names. Leases older than a day do not count.`,
		Example: `  gojail jail ls
  gojail jail ls debian --json | jq '.jails[].versions[].digest'`,
		Args:              cmdline.TakeUpToOneArgument("the name of a jail"),
		ValidArgsFunction: j.completeStored,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := j.listStored(args)
			if err != nil {
				return err
			}
			if asJSON {
				return cmdline.PrintJSON(cmd.OutOrStdout(), map[string][]storedJail{"jails": list})
			}
			return printStored(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (j *jailCommand) listStored(names []string) ([]storedJail, error) {
	s, err := j.openStore()
	if err != nil {
		return nil, err
	}
	jails, err := selectJails(s, names)
	if err != nil {
		return nil, err
	}
	u, err := s.Survey(store.Cluster{}, store.DefaultExpiry)
	if err != nil {
		return nil, err
	}
	list := []storedJail{}
	for _, jail := range jails {
		versions, err := jail.Versions()
		if err != nil {
			return nil, err
		}
		row := storedJail{Name: jail.Name, Versions: []storedVersion{}}
		for _, v := range versions {
			stored := storedVersion{Record: v.Record, Current: v.Current, Users: append([]string{}, u.Users(v)...)}
			stored.nodes, stored.jobs = u.Count(v)
			if v.Err != nil {
				stored.Error = v.Err.Error()
			}
			if v.Current {
				row.Current = v.Version
			}
			row.Versions = append(row.Versions, stored)
		}
		list = append(list, row)
	}
	return list, nil
}

func printStored(w io.Writer, list []storedJail) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	if len(list) == 0 {
		fmt.Fprintln(t, "The store has no jail.")
	} else {
		fmt.Fprintln(t, "JAIL\tVERSION\tFORMAT\tSIZE\tNODES\tJOBS\tBUILT\tBY\tDIGEST\tSOURCE")
	}
	for _, jail := range list {
		for _, v := range jail.Versions {
			mark := " "
			if v.Current {
				mark = "*"
			}
			if v.Error != "" {
				fmt.Fprintf(t, "%s\t%s%s\t%s\t-\t%d\t%d\t-\t-\t-\t%s\n", jail.Name, mark, v.Version, v.Format, v.nodes,
					v.jobs, oneline.Printable(v.Error))
				continue
			}
			fmt.Fprintf(t, "%s\t%s%s\t%s\t%s\t%d\t%d\t%s\t%s\t%.19s\t%s\n", jail.Name, mark, v.Version, v.Format,
				formatSize(v.Stored), v.nodes, v.jobs,
				v.Built.Local().Format(time.DateTime), oneline.Printable(v.By), oneline.Printable(v.Digest),
				oneline.Printable(v.Source))
		}
		if len(jail.Versions) == 0 {
			fmt.Fprintf(t, "%s\tno version\n", jail.Name)
		}
	}
	return t.Flush()
}

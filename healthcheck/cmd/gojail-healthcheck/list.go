// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/checks"
	"github.com/gojail/gojail/healthcheck/config"
	"github.com/gojail/gojail/healthcheck/nhc"
	"github.com/gojail/gojail/internal/tomlfile"
)

func listCommand(n *node) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the checks as this node is configured",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := n.load(cmd)
			if err != nil {
				return err
			}
			if err := list(cmd.OutOrStdout(), c); err != nil {
				return err
			}
			return listNHC(cmd.OutOrStdout(), c, n.roots.Proc)
		},
	}
}

func list(to io.Writer, c *config.Config) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "CHECK\tSEVERITY\tTIMEOUT\tBAD\tGOOD\tLOOKS AT")
	on := map[string]check.Check{}
	for _, check := range c.Rules(checks.All()) {
		on[check.Name] = check
	}
	for _, check := range checks.All() {
		if o, is := on[check.Name]; is {
			fmt.Fprintf(w, "%s\t%s\t%v\t%d\t%d\t%s\n", o.Name, o.Severity, o.Timeout, o.Bad, o.Good, o.Looks)
		} else {
			fmt.Fprintf(w, "%s\toff\t-\t-\t-\t%s\n", check.Name, check.Looks)
		}
	}
	return w.Flush()
}

// listNHC says how each line of nhc.conf that is for this node was read.
func listNHC(to io.Writer, c *config.Config, proc string) error {
	lines, err := checks.NHCLines(&c.Settings, proc)
	if err != nil || len(lines) == 0 {
		return err
	}
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "\nLINE\tCHECK\t%s\n", c.NHC)
	for _, l := range lines {
		how := [...]string{nhc.Node: "nhc", nhc.Storage: "nhc-files", nhc.Command: "nhc-command"}[l.Domain]
		text := l.Text
		switch {
		case l.Problem != "":
			how, text = "not read", l.Text+"   # "+l.Problem
		case l.Setting:
			how = "no meaning"
		case len(l.NotDone) > 0:
			text += "   # without " + strings.Join(l.NotDone, " ")
		}
		fmt.Fprintf(w, "%d\t%s\t%s\n", l.Number, how, tomlfile.Printable(text))
	}
	return w.Flush()
}

func explainCommand(n *node) *cobra.Command {
	return &cobra.Command{
		Use:               "explain CHECK",
		Short:             "Say what a check looks at and what to do when it fails, as this node is configured",
		Args:              oneCheck,
		ValidArgsFunction: completeCheck,
		RunE: func(cmd *cobra.Command, args []string) error {
			all := checks.All()
			i := slices.IndexFunc(all, func(c check.Check) bool { return c.Name == args[0] })
			if i < 0 {
				return noCheck(args[0])
			}
			c, err := n.load(cmd)
			if err != nil {
				return err
			}
			explain(cmd.OutOrStdout(), all[i], c)
			return nil
		},
	}
}

func explain(to io.Writer, row check.Check, c *config.Config) {
	effect := "It is switched off."
	if on := c.Rules([]check.Check{row}); len(on) > 0 {
		effect = fmt.Sprintf("Bad after %s, mended after %s. ", inARow(on[0].Bad), inARow(on[0].Good))
		if on[0].Severity == check.Drain {
			effect += "It drains the node."
		} else {
			effect += "It is only told of: in the log, in metrics, and by the exit code 1."
		}
	}
	fmt.Fprintf(to, "%s looks at %s.\n\n%s\n\nWhat to do: %s\n", row.Name, strings.TrimSuffix(row.Looks, "."), effect, row.Do)
}

func inARow(runs int) string {
	if runs == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs in a row", runs)
}

func noCheck(name string) error {
	return fmt.Errorf("no check %.50q; there are: %s", name, strings.Join(checks.Names(), ", "))
}

func completeCheck(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return checks.Names(), cobra.ShellCompDirectiveNoFileComp
}

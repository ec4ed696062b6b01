// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
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
	"github.com/gojail/gojail/internal/oneline"
)

func newListCommand(n *node) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the checks as configured on this node",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := n.loadConfig(cmd)
			if err != nil {
				return err
			}
			if err := writeList(cmd.OutOrStdout(), c); err != nil {
				return err
			}
			return writeNHCLines(cmd.OutOrStdout(), c, n.roots)
		},
	}
}

func writeList(to io.Writer, c *config.Config) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "CHECK\tSEVERITY\tTIMEOUT\tBAD\tGOOD\tLOOKS AT")
	on := map[string]check.Check{}
	for _, check := range c.SelectChecks(checks.All()) {
		on[check.Name] = check
	}
	for _, check := range checks.All() {
		if o, ok := on[check.Name]; ok {
			fmt.Fprintf(w, "%s\t%s\t%v\t%d\t%d\t%s\n", o.Name, o.Severity, o.Timeout, o.BadRuns, o.GoodRuns, o.Subject)
		} else {
			fmt.Fprintf(w, "%s\toff\t-\t-\t-\t%s\n", check.Name, check.Subject)
		}
	}
	return w.Flush()
}

// writeNHCLines writes how each line of nhc.conf for this node was parsed, after those of NHC's sysconfig file.
func writeNHCLines(to io.Writer, c *config.Config, roots check.Roots) error {
	lines, err := checks.ReadNHCLines(&c.Settings, roots.Proc, roots.Etc)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	for i, l := range lines {
		if i == 0 || lines[i-1].File != l.File {
			fmt.Fprintf(w, "\nLINE\tCHECK\t%s\n", cmp.Or(l.File, c.NHC))
		}
		how := [...]string{nhc.Node: "nhc", nhc.Storage: "nhc-files", nhc.Command: "nhc-command"}[l.Domain]
		remarks := listRemarks(&l, c, how)
		switch {
		case l.Setting && l.Problem == "":
			how = "ignored"
		case l.Setting:
			how = "setting"
		case l.Problem != "":
			how = "not parsed"
		}
		text := l.Text
		if len(remarks) > 0 {
			text += "   # " + strings.Join(remarks, "; ")
		}
		fmt.Fprintf(w, "%d\t%s\t%s\n", l.Number, how, oneline.Printable(text))
	}
	return w.Flush()
}

// listRemarks returns what an administrator should know of a line before a run evaluates it with a check.
func listRemarks(l *nhc.Line, c *config.Config, check string) []string {
	if l.Problem != "" {
		return append(l.Notes, l.Problem)
	}
	remarks := l.Notes
	if len(l.NotDone) > 0 {
		remarks = append(remarks, "ignored: "+strings.Join(l.NotDone, " "))
	}
	if l.NonFatal && !l.Setting {
		remarks = append(remarks, "does not drain")
	}
	if err := l.FindObstacle(&nhc.System{}); err != nil {
		remarks = append(remarks, err.Error())
	}
	for _, on := range c.SelectChecks(checks.All()) {
		if has := checks.FindNHCTime(on.Timeout); on.Name == check && l.Time >= has {
			remarks = append(remarks, fmt.Sprintf("may take %v, but a run has %v; raise timeout in [check.%s]", l.Time,
				has, check))
		}
	}
	return remarks
}

func newExplainCommand(n *node) *cobra.Command {
	return &cobra.Command{
		Use:               "explain CHECK",
		Short:             "Explain what a check looks at and what to do when it fails, as configured on this node",
		Args:              requireCheckName,
		ValidArgsFunction: completeCheck,
		RunE: func(cmd *cobra.Command, args []string) error {
			all := checks.All()
			i := slices.IndexFunc(all, func(c check.Check) bool { return c.Name == args[0] })
			if i < 0 {
				return newUnknownCheckError(args[0])
			}
			c, err := n.loadConfig(cmd)
			if err != nil {
				return err
			}
			writeExplanation(cmd.OutOrStdout(), all[i], c)
			return nil
		},
	}
}

func writeExplanation(to io.Writer, row check.Check, c *config.Config) {
	effect := "The check is switched off."
	if on := c.SelectChecks([]check.Check{row}); len(on) > 0 {
		effect = fmt.Sprintf("Bad after %s, good again after %s. ", formatRuns(on[0].BadRuns),
			formatRuns(on[0].GoodRuns))
		if on[0].Severity == check.Drain {
			effect += "A failure drains the node."
		} else {
			effect += "It does not drain the node: it is reported in the log, in metrics, and by exit code 1."
		}
	}
	fmt.Fprintf(to, "%s looks at %s.\n\n%s\n\nWhat to do: %s\n", row.Name, strings.TrimSuffix(row.Subject, "."), effect,
		row.Remedy)
}

// formatRuns returns a number of consecutive runs in words.
func formatRuns(runs int) string {
	if runs == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs in a row", runs)
}

// newUnknownCheckError returns the error for an unknown check.
func newUnknownCheckError(name string) error {
	return fmt.Errorf("no check %.50q; the checks are: %s", name, strings.Join(checks.Names(), ", "))
}

func completeCheck(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return checks.Names(), cobra.ShellCompDirectiveNoFileComp
}

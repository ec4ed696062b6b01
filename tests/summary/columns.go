// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// columnVariable names the column that the command runs for.
const columnVariable = "GOJAIL_RELEASE"

// cannotBeHad is the exit status of a command whose column does not exist here;
// the last line that it printed says why.
const cannotBeHad = 3

// column is one release's run of the suite.
type column struct {
	name    string
	run     *run
	missing string // why there is no such release here, or ""
}

// runColumns runs the command once for each column, one after the other, prints
// the table of all, and returns the exit status.
func runColumns(names []string, cmd command, qualifies func(string) bool) int {
	var columns []column
	for _, name := range names {
		fmt.Printf("==== %s ====\n", name)
		c := column{name: name, run: newRun(qualifies)}
		if cmd.each {
			c.run.each = os.Stdout
		}
		cmd.env = []string{columnVariable + "=" + name}
		if code, last := c.run.runTwice(cmd); code == cannotBeHad {
			c.missing = cmp.Or(last, "it cannot be had here")
		}
		columns = append(columns, c)
	}
	printTable(os.Stdout, columns)
	return closeColumns(os.Stdout, columns)
}

// listResults returns the result of each test of a column.
func (r *run) listResults() map[string]string {
	all := map[string]string{}
	for word, tests := range map[string][]string{"ok": r.passed, "skip": r.skipped, "FAIL": r.failed} {
		for _, test := range tests {
			all[test] = word
		}
	}
	return all
}

// printTable prints tests x columns; a test that a column did not run is "-".
func printTable(out io.Writer, columns []column) {
	rows := map[string][]string{}
	for i, c := range columns {
		for test, word := range c.run.listResults() {
			if rows[test] == nil {
				rows[test] = slices.Repeat([]string{"-"}, len(columns))
			}
			rows[test][i] = word
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "\ntest")
	for _, c := range columns {
		fmt.Fprint(w, "\t", c.name)
	}
	fmt.Fprintln(w)
	for _, test := range slices.Sorted(maps.Keys(rows)) {
		_, name, _ := strings.Cut(test, " ")
		fmt.Fprintf(w, "%s\t%s\n", name, strings.Join(rows[test], "\t"))
	}
	w.Flush()
}

// closeColumns prints each column's counts; a release that is missing counts as
// one skip, and as a failure where every column is missing.
func closeColumns(out io.Writer, columns []column) int {
	code, ran := 0, 0
	for _, c := range columns {
		fmt.Fprintf(out, "\n---- %s", c.name)
		if c.missing != "" {
			fmt.Fprintf(out, "\nskipped %s: %s\n0 passed, 0 failed, 1 skipped\n", c.name, c.missing)
			continue
		}
		ran++
		if c.run.close(out) != 0 {
			code = 1
		}
	}
	if ran == 0 {
		return 1
	}
	return code
}

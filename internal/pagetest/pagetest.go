// SPDX-License-Identifier: Apache-2.0

// Package pagetest compares generated parts of pages below docs/ with their sources, for tests.
package pagetest

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// CheckPart requires that a page has that text between the lines "<!-- generated: NAME -->" and "<!-- end: NAME -->",
// or writes it there.
func CheckPart(t *testing.T, page, name, want string, update bool) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	_, rest, begins := strings.Cut(string(text), "<!-- generated: "+name+" -->\n")
	mark := "\n<!-- end: " + name + " -->\n"
	part, tail, ends := strings.Cut(rest, mark)
	require.True(t, begins && ends, "%s has no part %q", page, name)
	if update {
		whole := strings.TrimSuffix(string(text), rest) + "\n" + want + "\n" + mark + tail
		require.NoError(t, os.WriteFile(page, []byte(whole), 0o644))
		return
	}
	assert.Equal(t, want, strings.Trim(part, "\n"),
		"%s is out of date; in the test's directory run: go test -run %s . -update", page, t.Name())
}

// FormatTable returns a table of Markdown without a line's end after the last row.
func FormatTable(head []string, rows [][]string) string {
	lines := []string{formatRow(head), strings.Repeat("| --- ", len(head)) + "|"}
	for _, row := range rows {
		lines = append(lines, formatRow(row))
	}
	return strings.Join(lines, "\n")
}

func formatRow(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }

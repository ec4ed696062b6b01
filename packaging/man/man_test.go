// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var testFooter = footer{version: "1.0.0", date: "2026-01-02"}

// TestCommandPages: a page has all that --help prints.
func TestCommandPages(t *testing.T) {
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "x", Version: "1", Long: "x is a program: it does much. More.\n  a   one"}
	root.PersistentFlags().String("config", "/etc/x", "the file")
	sub := &cobra.Command{Use: "show NAME", Short: "Show one", Example: "  x show a\n    b", Run: run}
	sub.Flags().BoolP("all", "a", false, "show -- all")
	sub.Flags().Bool("child", false, "hidden")
	require.NoError(t, sub.Flags().MarkHidden("child"))
	sub.AddCommand(&cobra.Command{Use: "inner", Short: "Inner one", Run: run})
	root.AddCommand(sub, &cobra.Command{Use: "of-itself", Hidden: true, Run: run})

	pages := commandPages(root, true, testFooter)
	require.Len(t, pages, 2)
	assert.Equal(t, `.TH X 8 2026-01-02 "gojail 1.0.0"
.SH NAME
x \- a program
.SH SYNOPSIS
.EX
  x [command]
.EE
.SH DESCRIPTION
x is a program: it does much. More.
.PP
.EX
  a   one
.EE
.SH OPTIONS
.TP
\fB\-\-config string\fR
the file (default "/etc/x")
.TP
\fB\-h, \-\-help\fR
help for x
.TP
\fB\-v, \-\-version\fR
version for x
.SH COMMANDS
.TP
\fBx completion\fR
Generate the autocompletion script for the specified shell
.TP
\fBx help\fR
Help about any command
.TP
\fBx\-show(8)\fR
Show one
`, before(pages[0], ".SH SEE ALSO"))
	assert.Equal(t, `.TH X\-SHOW 8 2026-01-02 "gojail 1.0.0"
.SH NAME
x\-show \- show one
.SH SYNOPSIS
.EX
  x show NAME [flags]
  x show [command]
.EE
.SH DESCRIPTION
Show one
.SH OPTIONS
.TP
\fB\-a, \-\-all\fR
show \-\- all
.TP
\fB\-h, \-\-help\fR
help for show
.SH EXAMPLES
.RS 4
.EX
x show a
  b
.EE
.RE
.SH COMMANDS
.SS x show inner
.EX
  x show inner [flags]
.EE
.PP
Inner one
.TP
\fB\-h, \-\-help\fR
help for inner
.SH GLOBAL OPTIONS
.TP
\fB\-\-config string\fR
the file (default "/etc/x")
`, before(pages[1], ".SH SEE ALSO"))
}

// before returns a page up to a text.
func before(p *page, text string) string {
	head, _, _ := strings.Cut(p.text.String(), text)
	return head
}

func TestProse(t *testing.T) {
	p := &page{}
	p.heading("A")
	p.prose("One\n.two \\ -x\n  't  u\n\n  v\nthree\n\nfour\n")
	assert.Equal(t, ".SH A\nOne\n\\&.two \\e \\-x\n.PP\n.EX\n  \\(aqt  u\n\n  v\n.EE\n.PP\nthree\n.PP\nfour\n", p.text.String())
}

const example = `# x.toml: an example. Install it.
#
# More.

# A key.
#: a = 1
# Two
# keys.
b = 2
c = 3

# A table.
[[t]]
# Its key.
#: d = 4

[[t]]
d = 5
`

func TestConfigPage(t *testing.T) {
	p, err := configPage("x.toml", example, testFooter)
	require.NoError(t, err)
	assert.Contains(t, p.text.String(), `.TH X.TOML 5 2026-01-02 "gojail 1.0.0"
.SH NAME
x.toml \- an example
.SH DESCRIPTION
Install it.
.PP
More.
.SH KEYS
.TP
\fB#: a = 1\fR
A key.
.TP
\fBb = 2\fR
.TQ
\fBc = 3\fR
Two
keys.
.SS [[t]]
A table.
.TP
\fB#: d = 4\fR
Its key.
.PP
.RS 4
.EX
[[t]]
d = 5
.EE
.RE
.SH FILES
`)
	_, err = configPage("y.toml", example, testFooter)
	assert.ErrorContains(t, err, "y.toml")
}

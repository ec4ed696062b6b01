// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var testFooter = footer{version: "1.0.0", date: "2026-01-02"}

const help = `Sets up cards. Like so:
  a   one

More.

Usage:
  gojail vf apply [flags]

Examples:
  gojail vf apply --dry-run

Available Commands:
  help        Help about any command

Flags:
      --dry-run   print -- nothing else
  -u, --user string   this user

Global Flags:
      --config string    the file (default "/etc")

Use "gojail vf apply [command] --help" for more information about a command.
`

func TestHelpIsTakenApart(t *testing.T) {
	c := &command{}
	require.NoError(t, c.parse(help))
	assert.Equal(t, &command{
		long:     "Sets up cards. Like so:\n  a   one\n\nMore.\n\n",
		usage:    []string{"gojail vf apply [flags]"},
		examples: []string{"gojail vf apply --dry-run"},
		flags:    []option{{"--dry-run", "print -- nothing else"}, {"-u, --user string", "this user"}},
		global:   []option{{"--config string", `the file (default "/etc")`}},
		below:    []*command{{name: []string{"help"}, short: "Help about any command"}},
	}, c)
	for _, bad := range []string{"", "Usage:\n  x\n", "Text.\n\nUsage:\n  x\n\nFlags:\n  dry-run\n", "Text.\n\nUsage:\n  x\n\nAvailable Commands:\n  help\n"} {
		assert.Error(t, (&command{}).parse(bad), bad)
	}
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

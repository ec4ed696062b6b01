// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/checks"
	"github.com/gojail/gojail/internal/nstest"
)

func TestParse(t *testing.T) {
	c, err := Parse("", "n1", checks.Names())
	require.NoError(t, err)
	assert.Equal(t, Defaults(), c)

	const text = `total = "40s"
[slurm]
timeout = "2s"
[[override]]
nodes = "gpu[1-4]"
total = "30s"
[override.slurm]
drain = false
[[override]]
nodes = "gpu3"
slurm.again = "1m"
`
	for node, want := range map[string]Slurm{
		"n1":   {Scontrol: "/usr/bin/scontrol", Timeout: 2 * time.Second, Drain: true, Again: 5 * time.Minute},
		"gpu1": {Scontrol: "/usr/bin/scontrol", Timeout: 2 * time.Second, Drain: false, Again: 5 * time.Minute},
		"gpu3": {Scontrol: "/usr/bin/scontrol", Timeout: 2 * time.Second, Drain: false, Again: time.Minute},
	} {
		c, err := Parse(text, node, checks.Names())
		require.NoError(t, err)
		assert.Equal(t, want, c.Slurm, node)
		assert.Equal(t, map[bool]time.Duration{true: 40 * time.Second, false: 30 * time.Second}[node == "n1"], c.Total, node)
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"totl = 1":                      "line 1: totl: unknown key",
		"total = 20":                    `line 1: total: is a number; write a time in quotes, such as "20s"`,
		"total = \"20ns\"":              `line 1: total: 20ns: write a time from "2s" to "5m0s"`,
		"\ntotal = \"1h\"":              `line 2: total: 1h0m0s: write a time from "2s" to "5m0s"`,
		"run = \"x\"":                   `line 1: run: "x": write an absolute path`,
		"state = \"/a/../b\"":           `line 1: state: "/a/../b": write an absolute path`,
		"[slurm]\nscontrol = \"x\"":     `line 2: slurm.scontrol: "x": write an absolute path`,
		"[check.nothing]\noff=true":     `line 1: check.nothing: no such check; the checks are: `,
		"[[override]]\ntotal = \"30s\"": `line 1: override 1: nodes: the list of nodes is empty`,
		"[[override]]\nnodes = \"n[\"":  `line 2: override 1: nodes: `,
		"[[override]]\nnodes = \"n1\"\n[[override]]\nnodes=\"n2\"\nrun=\"x\"": `line 5: override 2: run: "x": write an absolute path`,
		"[[override]]\nnodes = \"n1\"\n[[override.override]]\nnodes=\"n2\"":   `unknown key`,
	} {
		_, err := Parse(text, "n9", checks.Names())
		assert.ErrorContains(t, err, want, text)
	}
}

func TestRulesOfAConfiguration(t *testing.T) {
	c := Defaults()
	c.Check = map[string]Rule{"a": {Off: true}, "b": {Severity: check.WarnOnly, Timeout: time.Second, Bad: 4, Good: 5}}
	given := []check.Check{{Name: "a"}, {Name: "b", Severity: check.Drain, Timeout: 2, BadRuns: 1, GoodRuns: 1}, {Name: "c", Severity: check.Drain, Timeout: 3}}
	assert.Equal(t, []check.Check{
		{Name: "b", Severity: check.WarnOnly, Timeout: time.Second, BadRuns: 4, GoodRuns: 5},
		{Name: "c", Severity: check.Drain, Timeout: 3, BadRuns: 1, GoodRuns: 1},
	}, c.SelectChecks(given))
}

func TestLoadWantsAFileOfRoots(t *testing.T) {
	nstest.NeedRoot(t)
	_, err := Load(t.TempDir()+"/nothing", "n1", checks.Names())
	assert.ErrorIs(t, err, os.ErrNotExist)
}

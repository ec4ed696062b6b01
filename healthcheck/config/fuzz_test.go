// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/checks"
)

// FuzzParse: an error is one printable line, and what is accepted selects checks with timeouts.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile(examplePath)
	require.NoError(f, err)
	f.Add(strings.ReplaceAll(string(text), "\n#: ", "\n"), "gpu07")
	for _, text := range []string{
		"", "totl = 1", "total = \"40s\"\n[[override]]\nnodes = \"gpu[1-4]\"\ntotal = \"30s\"",
		"[xid]\n94 = \"drain\"", "[network]\nports = [\"mlx5_0/1\"]", "[check.vf]\noff = true\nseverity = \"warn\"",
	} {
		f.Add(text, "gpu1")
	}
	names, all := checks.Names(), checks.All()
	f.Fuzz(func(t *testing.T, text, node string) {
		c, err := Parse(text, node, names)
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Fatalf("%q", err)
			}
			return
		}
		for _, check := range c.SelectChecks(all) {
			if check.Timeout <= 0 || check.Timeout > c.Total {
				t.Fatalf("%s: %v of %v", check.Name, check.Timeout, c.Total)
			}
		}
	})
}

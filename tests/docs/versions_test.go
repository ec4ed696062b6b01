// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/contract"
)

// TestContractOfTheRelease: CHANGELOG.md names the contract of the sources for the release that they are of or come before, and
// SECURITY.md has both in its table.
func TestContractOfTheRelease(t *testing.T) {
	read := func(name, pattern string) []string {
		text, err := os.ReadFile(filepath.Join(repository, name))
		require.NoError(t, err)
		found := regexp.MustCompile(pattern).FindStringSubmatch(string(text))
		require.NotNil(t, found, "%s has no %s", name, pattern)
		return found[1:]
	}
	release := read("CHANGELOG.md", `(?m)^## (\d+\.\d+\.\d+) \((?:unreleased|\d{4}-\d\d-\d\d)\)\n\nContract (\d+)\.`)
	assert.Equal(t, strconv.Itoa(contract.Version), release[1], "contract of %s", release[0])
	assert.Equal(t, release, read("SECURITY.md", `(?m)^\| version \| contract \| fixes \|\n\|[ |-]*\n\| (\S+) \| (\d+) \|`))
}

// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// compare fails for each finding that frozen.txt does not have, and for each line there with the word kind
// that is no finding any more: the file only gets shorter.
func compare(t *testing.T, kind string, found []string) {
	t.Helper()
	text, err := os.ReadFile("frozen.txt")
	require.NoError(t, err)
	frozen := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(found)
	for _, finding := range found {
		if !slices.Contains(frozen, finding) {
			assert.Fail(t, finding)
		}
	}
	for _, line := range frozen {
		if slices.Contains(strings.Fields(line), kind) && !slices.Contains(found, line) {
			assert.Fail(t, "take this line out of frozen.txt: "+line)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package site_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// procedure is the numbered steps of a section of a page: what an administrator does, and so the tests.
type procedure []string

// readProcedure returns the steps of a section of a page below docs/.
func readProcedure(t *testing.T, page, heading string) procedure {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", page))
	require.NoError(t, err)
	section := regexp.MustCompile(`(?ms)^#+ ` + regexp.QuoteMeta(heading) + `\n(.*?)(^#|\z)`).FindSubmatch(text)
	require.NotNil(t, section, "%s has no section %q", page, heading)
	starts := regexp.MustCompile(`(?m)^\d+\. `).FindAllIndex(section[1], -1)
	require.NotEmpty(t, starts, "%s: no steps in %q", page, heading)
	var steps procedure
	for i, start := range starts {
		end := len(section[1])
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		steps = append(steps, string(section[1][start[1]:end]))
	}
	return steps
}

// requireSays fails a test where a step, counted from 1, does not have the words that the test does instead of a reader.
func (p procedure) requireSays(t *testing.T, step int, words string) {
	t.Helper()
	require.GreaterOrEqual(t, len(p), step)
	assert.Contains(t, p[step-1], words, "step %d is another one now: change this test with it", step)
}

// readBlocks returns what a step, counted from 1, has between lines of three backquotes, without its indentation.
func (p procedure) readBlocks(t *testing.T, step int) (blocks []string) {
	t.Helper()
	require.GreaterOrEqual(t, len(p), step)
	for _, found := range regexp.MustCompile("(?ms)^( *)```\n(.*?)^ *```").FindAllStringSubmatch(p[step-1], -1) {
		blocks = append(blocks, regexp.MustCompile("(?m)^"+found[1]).ReplaceAllString(found[2], ""))
	}
	require.NotEmpty(t, blocks, "step %d", step)
	return blocks
}

// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// proseFiles are the files, beside the pages, whose texts name commands without marking them as code.
var proseFiles = []string{
	"packaging/prometheus/*.rules.yml", "packaging/grafana/[a-z]*.go", "packaging/systemd/*.service", "packaging/systemd/*.timer",
	"packaging/nfpm/plugstack.conf", "*.example",
}

var (
	commentMark = regexp.MustCompile(`(?m)^\s*(?:#:?|//) ?`)
	mention     = regexp.MustCompile(`(?:^|[\s("])(?:gojail|gojail-healthcheck|gojail-exporter) [a-z-]`)
	clauseEnd   = regexp.MustCompile(`[.;:,"()]|$`)
)

// nounUse matches what follows a program's name where that is the subject or the object of a sentence, and not a command line.
var nounUse = regexp.MustCompile(`^\S+ (?:asks|from|for|has|in|itself|keeps|must|needs|on|reads|refuses|runs|tells|then|use|uses|works)\b`)

// findMentions returns the command lines that a text may name, each to the end of its clause.
func findMentions(text string) (found []string) {
	text = strings.Join(strings.Fields(commentMark.ReplaceAllString(text, "")), " ")
	for _, at := range mention.FindAllStringIndex(text, -1) {
		line := strings.TrimLeft(text[at[0]:], ` ("`)
		line = line[:clauseEnd.FindStringIndex(line)[0]]
		if !nounUse.MatchString(line) {
			found = append(found, line)
		}
	}
	return found
}

// assertProseCommandsExist requires that the commands exist that alerts, dashboards, units and example files tell people to run.
func assertProseCommandsExist(t *testing.T, known map[string]*command) {
	t.Helper()
	assert.Equal(t, []string{"gojail vf ls and gojail check say why", "gojail check say why", "gojail-healthcheck --dry-run"},
		findMentions("# No job gets them. gojail vf\n# ls and gojail check say why; so does gojail-healthcheck --dry-run, and gojail has it."))
	for _, pattern := range proseFiles {
		files, err := filepath.Glob(filepath.Join(repository, pattern))
		require.NoError(t, err)
		count := 0
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, line := range findMentions(string(text)) {
				count++
				assert.NoError(t, checkCode(known, line), "%s: %s", path, line)
			}
		}
		assert.True(t, count > 0 || pattern == "packaging/systemd/*.timer", "no text of %s names a command", pattern)
	}
}

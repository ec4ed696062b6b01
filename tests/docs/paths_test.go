// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// sourcePath matches a code span that names a file or folder of this repository.
var sourcePath = regexp.MustCompile(`^(?:docs|gojail|healthcheck|include|internal|netsetup|packaging|spank|systemd|tests)/[\w./-]*$`)

// examples are the files that CONTRIBUTING.md tells its reader to create.
var examples = []string{"healthcheck/checks/load.go", "healthcheck/checks/testdata/checks/load", "gojail/cli/where.go"}

func TestSourcePathsExist(t *testing.T) {
	count := 0
	for _, p := range pages(t) {
		for _, l := range p.code {
			if !sourcePath.MatchString(l.text) || slices.Contains(examples, l.text) {
				continue
			}
			count++
			there, err := filepath.Glob(filepath.Join(repository, l.text))
			assert.NoError(t, err)
			assert.NotEmpty(t, there, "%s:%d: there is no %s", p.path, l.number, l.text)
		}
	}
	assert.Greater(t, count, 10)
}

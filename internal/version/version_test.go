// SPDX-License-Identifier: Apache-2.0

package version

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A tag of a release names the version that the tagged sources say. Debian and RPM compare such versions in the same way.
func TestVersionIsThatOfTheTag(t *testing.T) {
	assert.Regexp(t, `^[0-9]+\.[0-9]+\.[0-9]+(~[a-z]+[0-9]*)?$`, Text())
	out, err := exec.Command("git", "tag", "--points-at", "HEAD").Output()
	if err != nil {
		t.Skip("the sources are not in a git repository")
	}
	for _, tag := range strings.Fields(string(out)) {
		if strings.HasPrefix(tag, "v") {
			assert.Equal(t, "v"+strings.ReplaceAll(Text(), "~", "-"), tag)
		}
	}
}

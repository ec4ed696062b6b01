// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadGojailVersion(t *testing.T) {
	const build = "../../build/"
	version, err := os.ReadFile(build + "version")
	if err != nil {
		t.Skip("needs make all")
	}
	assert.Equal(t, strings.TrimSpace(string(version)), readGojailVersion(build+"lib/gojail/spank_gojail.so"))
	n := newGoodNode(t)
	assert.Equal(t, "unknown", readGojailVersion(n.LibDir+"/spank_gojail.so"))
	_, err = readPluginVersion("/bin/true")
	require.ErrorContains(t, err, "/bin/true is not a Slurm plugin")
}

// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/version"
)

func TestReadGojailVersion(t *testing.T) {
	const built = "../../build/lib/gojail/spank_gojail.so"
	if _, err := os.Stat(built); err != nil {
		t.Skip("needs make all")
	}
	assert.Equal(t, version.Text(), readGojailVersion(built))
	n := newGoodNode(t)
	assert.Equal(t, "unknown", readGojailVersion(n.LibDir+"/spank_gojail.so"))
	_, err := readPluginVersion("/bin/true")
	require.ErrorContains(t, err, "/bin/true is not a Slurm plugin")
}

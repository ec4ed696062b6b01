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
	known, err := readKnownReleases(build + "lib/gojail/spank_gojail.so")
	require.NoError(t, err)
	assert.Equal(t, []slurmVersion{0x160500, 0x170200, 0x170b00, 0x180500, 0x180b00, 0x190500, 0x190b00, 0x1a0500}, known)
	n := newGoodNode(t)
	assert.Equal(t, "unknown", readGojailVersion(n.LibDir+"/spank_gojail.so"))
	_, err = readPluginVersion("/bin/true")
	require.ErrorContains(t, err, "/bin/true is not a Slurm plugin")
}

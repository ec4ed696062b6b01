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

// TestCheckNamesTheSlurm: of several on the node, the one whose plugins slurm.conf names first.
func TestCheckNamesTheSlurm(t *testing.T) {
	n := newGoodNode(t)
	require.NoError(t, os.Mkdir(n.dir+"/other", 0o755))
	n.writePlugin(t, "other/auth_slurm.so", "0x160507")
	conf := n.readFile(t, "slurm/slurm.conf")
	for plugins, want := range map[string]string{"plugins": "22.05.9 (" + n.dir + "/plugins)", "other": "22.05.7 (" + n.dir + "/other)"} {
		n.writeFile(t, "slurm/slurm.conf", strings.Replace(conf, "PluginDir=", "PluginDir="+n.dir+"/"+plugins+":", 1), 0o644)
		var all []string
		Check(n.Node, func(f Finding) { all = append(all, f.String()) })
		assert.Contains(t, strings.Join(all, "\n"), "for Slurm 22.05 to 22.05, this node has "+want)
	}
}

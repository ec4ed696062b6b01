// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNodeConf(t *testing.T) {
	s := newNetSite(t, networkText)
	_, _, err := s.gojail("node-conf")
	assert.ErrorContains(t, err, "run `gojail vf apply` first")
	_, _, err = s.gojail("vf", "apply")
	require.NoError(t, err)
	out, _, err := s.gojail("node-conf")
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(out, "Gres=nic:rail0:2 Features=gojail,jail-") && strings.Count(out, "\n") == 1, out)

	// Without a network.toml there are no VFs, and a mistake in it is none of that.
	s.writeFile(t, "tebian = \"x\"\n")
	_, _, err = s.gojail("node-conf")
	assert.ErrorContains(t, err, "tebian")
	require.NoError(t, os.Remove(filepath.Join(s.dir, "network.toml")))
	out, _, err = s.gojail("node-conf")
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(out, "Features=gojail,jail-"), out)
}

// TestNodeConfRunsNothingOfPath: root's PATH may begin with a directory that others write.
func TestNodeConfRunsNothingOfPath(t *testing.T) {
	s := newNetSite(t, "")
	s.configure(t, "", "\n[slurm]\nhost = [\""+s.dir+"/slurm\"]\n")
	planted, ran := filepath.Join(s.dir, "planted"), filepath.Join(s.dir, "ran")
	for path, script := range map[string]string{
		filepath.Join(planted, "scontrol"):         "#!/bin/sh\ntouch " + ran + "\n",
		filepath.Join(s.dir, "slurm/bin/scontrol"): "#!/bin/sh\necho the site has this one >&2; exit 1\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(script), 0o755))
	}
	t.Setenv("PATH", planted)
	_, _, err := s.gojail("node-conf", "--check")
	assert.ErrorContains(t, err, "the site has this one")
	assert.NoFileExists(t, ran)
}

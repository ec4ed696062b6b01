// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/source/sourcetest"
)

// TestBuildFromARegistryWithTLSAndPassword: the command, with the credentials of podman and the authority of the registry.
func TestBuildFromARegistryWithTLSAndPassword(t *testing.T) {
	s, store := newStoreSite(t)
	image := sourcetest.Image(t, []string{"etc/", "etc/a=1"}, []string{"etc/.wh.a=", "etc/b=2"})
	digest, err := image.Digest()
	require.NoError(t, err)
	address, authority := sourcetest.Registry{TLS: true, Password: "secret"}.Start(t, image)
	auth := filepath.Join(s.dir, "auth.json")
	require.NoError(t, os.WriteFile(auth, []byte(sourcetest.Credentials(address, "hpc", "secret")), 0o600))
	build := func(auth string, args ...string) (string, error) {
		cmd := s.command(append([]string{"jail", "build", "debian", "--from", "docker://" + address + "/hpc/debian:13"}, args...)...)
		cmd.Env = append(cmd.Env, "REGISTRY_AUTH_FILE="+auth, "DOCKER_CONFIG="+s.dir, "HOME="+s.dir)
		out, err := cmd.CombinedOutput()
		assert.NotContains(t, string(out), "secret")
		return string(out), err
	}
	out, err := build(auth)
	require.Error(t, err)
	assert.Contains(t, out, "certificate signed by unknown authority")
	out, err = build(auth+".missing", "--ca", authority)
	require.Error(t, err)
	assert.Contains(t, out, "UNAUTHORIZED")
	out, err = build(auth, "--ca", authority, "--json")
	require.NoError(t, err, out)
	var record struct{ Version, Digest string }
	require.NoError(t, json.Unmarshal([]byte(out), &record), out)
	assert.Equal(t, digest.String(), record.Digest)
	text, err := os.ReadFile(filepath.Join(store, "debian/versions", record.Version, "etc/b"))
	require.NoError(t, err)
	assert.Equal(t, "2", string(text))
	work, err := os.ReadDir(filepath.Join(store, "debian/work"))
	require.NoError(t, err)
	assert.Empty(t, work)
}

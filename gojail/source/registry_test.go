// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/source/sourcetest"
)

func TestRegistry(t *testing.T) {
	image := sourcetest.Image(t, []string{"a=1"}, []string{"b=2"})
	digest, err := image.Digest()
	require.NoError(t, err)
	for _, tls := range []bool{false, true} {
		for _, password := range []string{"", "secret"} {
			t.Run(fmt.Sprintf("TLS %v, password %q", tls, password), func(t *testing.T) {
				t.Setenv("DOCKER_CONFIG", t.TempDir()) // nobody's credentials
				t.Setenv("REGISTRY_AUTH_FILE", "")
				address, authority := sourcetest.Registry{TLS: tls, Password: password}.Start(t, image)
				options := Options{Authority: authority}
				if password != "" {
					_, _, err := readNames(t, "docker://"+address+"/hpc/debian:13", options)
					require.ErrorContains(t, err, "UNAUTHORIZED")
					writeCredentials(t, address, password)
				}
				got, layers, err := readNames(t, "docker://"+address+"/hpc/debian:13", options)
				require.NoError(t, err)
				assert.Equal(t, []string{"a", "b"}, layers)
				assert.Equal(t, digest.String(), got.Digest)
				assert.True(t, got.Layers[0].Remote)
				_, layers, err = readNames(t, "docker://"+address+"/hpc/debian@"+digest.String(), options)
				require.NoError(t, err)
				assert.Equal(t, []string{"a", "b"}, layers)
				_, _, err = readNames(t, "docker://"+address+"/hpc/debian:12", options)
				require.ErrorContains(t, err, "cannot get "+address+"/hpc/debian:12: ")
				if tls {
					_, _, err = readNames(t, "docker://"+address+"/hpc/debian:13", Options{})
					require.ErrorContains(t, err, "certificate")
				}
			})
		}
	}
}

// writeCredentials writes credentials as docker login does.
func writeCredentials(t *testing.T, address, password string) {
	t.Helper()
	path := filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json")
	require.NoError(t, os.WriteFile(path, []byte(sourcetest.Credentials(address, "user", password)), 0o600))
}

func TestRegistryWithoutTLS(t *testing.T) {
	transport, err := newTransport(Options{})
	require.NoError(t, err)
	request := httptest.NewRequest(http.MethodGet, "http://192.168.1.1/v2/", nil)
	_, err = transport.RoundTrip(request)
	require.ErrorIs(t, err, errInsecure)
	address, authority := sourcetest.Registry{TLS: true}.Start(t, sourcetest.Image(t, []string{"a=1"}))
	named, err := newTransport(Options{Authority: authority})
	require.NoError(t, err)
	_, err = named.RoundTrip(httptest.NewRequest(http.MethodGet, "http://"+address+"/v2/", nil))
	require.ErrorIs(t, err, errInsecure, "also on loopback, where an authority is named")
	_, err = newTransport(Options{Authority: "/etc/hostname"})
	require.ErrorContains(t, err, "/etc/hostname has no certificate in PEM format")
	_, _, err = readNames(t, "docker://Not A Name", Options{})
	require.ErrorContains(t, err, "docker://Not A Name: ")
}

// TestRegistryThatLies: a registry may return another manifest or layer than was asked for.
func TestRegistryThatLies(t *testing.T) {
	good, bad := sourcetest.Image(t, []string{"a=1"}), sourcetest.Image(t, []string{"a=2"})
	address, _ := sourcetest.Registry{}.Start(t, bad)
	goodDigest, err := good.Digest()
	require.NoError(t, err)
	badDigest, err := bad.Digest()
	require.NoError(t, err)
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := "http://" + address + strings.ReplaceAll(r.URL.Path, goodDigest.Hex, badDigest.Hex)
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(liar.Close)
	_, host, _ := strings.Cut(liar.URL, "://")
	_, _, err = readNames(t, "docker://"+host+"/hpc/debian@"+goodDigest.String(), Options{})
	require.ErrorContains(t, err, "cannot get "+host+"/hpc/debian@"+goodDigest.String())
}

// TestRegistryThatRedirectsForEver: neither requests nor memory grow without a limit.
func TestRegistryThatRedirectsForEver(t *testing.T) {
	for _, part := range []string{"/manifests/", "/blobs/", "/v2/"} {
		var requests atomic.Int32
		image, _ := sourcetest.Registry{}.Start(t, sourcetest.Image(t, []string{"a=1"}))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			to := "http://" + image + r.URL.Path
			if strings.Contains(r.URL.Path, part) {
				to = r.URL.Path
				if requests.Add(1) > 1000 {
					to = "http://" + image + "/"
				}
			}
			http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		}))
		_, host, _ := strings.Cut(server.URL, "://")
		_, _, err := readNames(t, "docker://"+host+"/hpc/debian:13", Options{})
		server.Close()
		require.ErrorContains(t, err, "redirect", part)
		assert.Less(t, requests.Load(), int32(100), part)
	}
}

// TestRegistryWithALargeConfiguration: the manifest's sizes are those that the registry chooses.
func TestRegistryWithALargeConfiguration(t *testing.T) {
	for _, size := range []int64{-1, documentMax + 1, 100e9} {
		var blobs atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.Contains(r.URL.Path, "/manifests/"):
				w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
				fmt.Fprintf(w, `{"schemaVersion": 2, "config": {"digest": "sha256:%064d", "size": %d}}`, 1, size)
			case strings.Contains(r.URL.Path, "/blobs/"):
				blobs.Add(1)
				w.Write(make([]byte, documentMax+1))
			}
		}))
		_, host, _ := strings.Cut(server.URL, "://")
		_, _, err := readNames(t, "docker://"+host+"/hpc/debian:13", Options{})
		server.Close()
		require.EqualError(t, err, fmt.Sprintf("cannot get %s/hpc/debian:13: the manifest says that the configuration has %d bytes; the limit is 4194304", host, size))
		assert.Zero(t, blobs.Load(), "nothing is fetched")
	}
}

func TestLayerWithoutASize(t *testing.T) {
	manifest := &v1.Manifest{Layers: []v1.Descriptor{{MediaType: types.OCILayer, Size: -1}}}
	config := fmt.Appendf(nil, `{"rootfs": {"diff_ids": ["sha256:%064d"]}}`, 1)
	_, err := newManifestImage(v1.Hash{}, manifest, config, v1.Platform{},
		func(v1.Descriptor) (*Layer, error) { return new(Layer), nil })
	require.EqualError(t, err, "layer 1: the manifest says that it has -1 bytes")
}

// SPDX-License-Identifier: Apache-2.0

// Package sourcetest makes images for tests.
package sourcetest

import (
	"archive/tar"
	"bytes"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
)

// Tar returns a tar file with entries: "name/" is a directory, "name=text" a file, "name>target" a symbolic link, and
// "name&target" a hard link.
func Tar(t testing.TB, entries ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e, Typeflag: tar.TypeDir, Mode: 0o755, ModTime: time.Unix(1_000_000_000, 0),
			Format: tar.FormatPAX}
		text := ""
		if i := strings.IndexAny(e, "=>&"); i >= 0 {
			h.Name = e[:i]
			switch e[i] {
			case '=':
				text = e[i+1:]
				h.Typeflag, h.Size = tar.TypeReg, int64(len(text))
			case '>':
				h.Typeflag, h.Linkname = tar.TypeSymlink, e[i+1:]
			case '&':
				h.Typeflag, h.Linkname = tar.TypeLink, e[i+1:]
			}
		}
		require.NoError(t, w.WriteHeader(h))
		_, err := io.WriteString(w, text)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// Image returns an image for this machine with one layer for each list of entries.
func Image(t testing.TB, layers ...[]string) v1.Image {
	t.Helper()
	image := empty.Image
	for _, entries := range layers {
		text := Tar(t, entries...)
		layer,
			err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(text)),
				nil
		})
		require.NoError(t, err)
		image, err = mutate.AppendLayers(image, layer)
		require.NoError(t, err)
	}
	return For(t, image, runtime.GOARCH)
}

// For returns the image for another architecture.
func For(t testing.TB, image v1.Image, architecture string) v1.Image {
	t.Helper()
	config, err := image.ConfigFile()
	require.NoError(t, err)
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	image, err = mutate.ConfigFile(image, config)
	require.NoError(t, err)
	return image
}

// Layout writes an OCI layout with one image for each tag, and returns its directory.
func Layout(t testing.TB, images map[string]v1.Image) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	at, err := layout.Write(dir, empty.Index)
	require.NoError(t, err)
	for tag, image := range images {
		var options []layout.Option
		if tag != "" {
			options = append(options,
				layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag}))
		}
		require.NoError(t, at.AppendImage(image, options...))
	}
	return dir
}

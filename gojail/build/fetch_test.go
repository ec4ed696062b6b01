// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/source"
	"github.com/gojail/gojail/gojail/source/sourcetest"
	"github.com/gojail/gojail/gojail/unpack"
)

// randomText returns text that gzip cannot make much smaller.
func randomText(size int) string {
	bytes := make([]byte, size*3/4)
	rand.NewChaCha8([32]byte{}).Read(bytes)
	return strings.ReplaceAll(base64.StdEncoding.EncodeToString(bytes), "=", "")
}

// TestLayersAreUnpackedWhileTheyArrive: the registry sends the second half of a layer when the first half is in the tree.
func TestLayersAreUnpackedWhileTheyArrive(t *testing.T) {
	jail, dir := newJail(t)
	image := sourcetest.Image(t, []string{"first=" + randomText(300_000), "second=" + randomText(900_000)})
	manifest, err := image.Manifest()
	require.NoError(t, err)
	layer := manifest.Layers[0].Digest
	arrived := false
	source := slowRegistry(t, image, func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
		if !strings.HasSuffix(r.URL.Path, layer.String()) || r.Method != http.MethodGet {
			inner.ServeHTTP(w, r)
			return
		}
		whole := httptest.NewRecorder()
		inner.ServeHTTP(whole, r)
		body := whole.Body.Bytes()
		w.Write(body[:len(body)/2])
		w.(http.Flusher).Flush()
		arrived = assert.Eventually(t, func() bool {
			found, _ := filepath.Glob(filepath.Join(dir, "work/build-*/tree/first"))
			return len(found) == 1
		}, time.Minute, 5*time.Millisecond)
		w.Write(body[len(body)/2:])
	})
	record, err := Build(context.Background(), jail, request(source))
	require.NoError(t, err)
	assert.True(t, arrived)
	assert.EqualValues(t, 2, record.Entries)
	mustBeClean(t, dir)
}

// TestFetchedLayersAreLimited: what a registry sends is stored beside the versions of the jail.
func TestFetchedLayersAreLimited(t *testing.T) {
	limits := unpack.Limits{Entries: 1, Bytes: 100_000}
	t.Run("sizes of the manifest", func(t *testing.T) {
		jail, dir := newJail(t)
		var blobs atomic.Int32
		layers := []string{"a=" + randomText(80_000), "b=" + randomText(80_000)}
		r := request(slowRegistry(t, sourcetest.Image(t, layers[:1], layers[1:]), func(w http.ResponseWriter, r *http.Request, inner http.Handler) {
			blobs.Add(1)
			inner.ServeHTTP(w, r)
		}))
		r.Limits = limits
		_, err := Build(context.Background(), jail, r)
		require.EqualError(t, err, "the layers have more than 108192 bytes together; if the source is trusted, raise --max-size")
		assert.EqualValues(t, 1, blobs.Load(), "the configuration only")
		mustBeClean(t, dir)
	})
	for _, size := range []int64{-1, 1<<63 - 1} {
		_, err := newFetcher(context.Background(), nil, nil, []*source.Layer{{Remote: true, Size: 1}, {Remote: true, Size: size}}, 100)
		require.ErrorContains(t, err, "the layers have more than 100 bytes together", size)
	}
	t.Run("more than the manifest says", func(t *testing.T) {
		for _, size := range []int64{0, 1000} {
			s := newSpool(filepath.Join(t.TempDir(), "layer"))
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			s.fetchLayer(ctx, &source.Layer{Size: size, Open: func(context.Context) (io.ReadCloser, error) {
				return io.NopCloser(io.LimitReader(zeros{}, 1<<20)), nil
			}})
			require.EqualError(t, s.err, fmt.Sprintf("it has more than the %d bytes that the manifest says", size))
			info, err := os.Stat(s.path)
			require.NoError(t, err)
			assert.Equal(t, size+1, info.Size())
		}
	})
}

// zeros is an endless stream.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

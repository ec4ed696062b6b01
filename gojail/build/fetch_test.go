// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"encoding/base64"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/source/sourcetest"
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

// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// umociModule is the umoci to compare with. It is built in its own module, so that go.mod does not have it.
const umociModule = "github.com/opencontainers/umoci@v0.6.0"

// buildUmoci builds umoci, or skips the test if the module cannot be fetched.
func buildUmoci(t *testing.T) string {
	t.Helper()
	run := func(dir string, args ...string) ([]byte, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-modcacherw")
		return cmd.Output()
	}
	text, err := run(t.TempDir(), "mod", "download", "-json", umociModule)
	var module struct{ Dir, Error string }
	if json.Unmarshal(text, &module); err != nil || module.Dir == "" {
		t.Skipf("needs the network: %s cannot be fetched: %v %s", umociModule, err, module.Error)
	}
	program := filepath.Join(t.TempDir(), "umoci")
	if _, err := run(module.Dir, "mod", "download"); err != nil {
		t.Skipf("needs the network: what %s requires cannot be fetched: %v", umociModule, err)
	}
	_, err = run(module.Dir, "build", "-o", program, "./cmd/umoci")
	require.NoError(t, err)
	return program
}

// writeLayout writes an OCI image layout with an image "sample" of these layers.
func writeLayout(t *testing.T, dir string, layers []string) {
	t.Helper()
	blobs := filepath.Join(dir, "blobs", "sha256")
	require.NoError(t, os.MkdirAll(blobs, 0o755))
	add := func(kind string, text []byte) map[string]any {
		sum := fmt.Sprintf("%x", sha256.Sum256(text))
		require.NoError(t, os.WriteFile(filepath.Join(blobs, sum), text, 0o644))
		return map[string]any{"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + sum, "size": len(text)}
	}
	encode := func(value any) []byte {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		return text
	}
	var descriptors, digests []any
	for _, text := range layers {
		d := add("layer.v1.tar", []byte(text))
		descriptors, digests = append(descriptors, d), append(digests, d["digest"])
	}
	config := add("config.v1+json", encode(map[string]any{"os": "linux", "architecture": runtime.GOARCH, "rootfs": map[string]any{"type": "layers", "diff_ids": digests}}))
	manifest := add("manifest.v1+json", encode(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": descriptors}))
	manifest["annotations"] = map[string]string{"org.opencontainers.image.ref.name": "sample"}
	index := encode(map[string]any{"schemaVersion": 2, "manifests": []any{manifest}})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index.json"), index, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644))
}

// TestSamplesAreThoseOfUmoci has umoci unpack each sample. The trees are the same unless the sample says why not.
func TestSamplesAreThoseOfUmoci(t *testing.T) {
	newTree(t) // before a long build: it needs root
	program := buildUmoci(t)
	for name, s := range allSamples(t) {
		t.Run(name, func(t *testing.T) {
			tree, dir := newTree(t), t.TempDir()
			_, refused := tree.unpackSample(t, s)
			writeLayout(t, filepath.Join(dir, "image"), s.layers)
			theirs := Tree{Dir: filepath.Join(dir, "tree"), Self: tree.Self}
			require.NoError(t, os.Mkdir(theirs.Dir, 0o755))
			out, err := exec.Command(program, "raw", "unpack", "--image", filepath.Join(dir, "image")+":sample", theirs.Dir).CombinedOutput()
			if same := refused != nil && err != nil; same || (refused == nil) != (err == nil) {
				assert.Equal(t, same, s.umoci == "", "gojail: %v; umoci: %v %s", refused, err, out)
				return
			}
			var differences []string
			require.NoError(t, Compare(listOf(t, theirs), listOf(t, tree), func(d Difference) { differences = append(differences, d.String()) }))
			assert.Equal(t, len(differences) == 0, s.umoci == "", "%q", differences)
		})
	}
}

func listOf(t *testing.T, tree Tree) *bytes.Buffer {
	t.Helper()
	var list bytes.Buffer
	require.NoError(t, tree.List(t.Context(), &list))
	return &list
}

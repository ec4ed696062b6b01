// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/source/sourcetest"
	"github.com/gojail/gojail/gojail/unpack"
)

// TestDecompressionBombs: an archive that is small, and whose stream goes on after its last file, ends at the limit.
func TestDecompressionBombs(t *testing.T) {
	stream := append(sourcetest.Tar(t, "a=1"), make([]byte, 16<<20)...)
	for _, program := range []string{"gzip", "zstd", "bzip2", "xz"} {
		t.Run(program, func(t *testing.T) {
			jail, dir := newJail(t)
			packed := pack(t, program, stream)
			require.Less(t, len(packed), 50_000)
			path := filepath.Join(t.TempDir(), "bomb")
			require.NoError(t, os.WriteFile(path, packed, 0o644))
			r := request("tar:" + path)
			r.Limits = unpack.Limits{Entries: 100, Bytes: 1 << 20}
			_, err := Build(context.Background(), jail, r)
			require.EqualError(t, err, "layer 1 of 1: the decompressed layer is too large; if the source is trusted, raise --max-size")
			versions, err := jail.Versions()
			require.NoError(t, err)
			assert.Empty(t, versions)
			mustBeClean(t, dir)
			waitForNoChildren(t, dir)

			r.Limits.Bytes = 16 << 20
			record, err := Build(context.Background(), jail, r)
			require.NoError(t, err, "no bomb for who allows it")
			assert.EqualValues(t, 1, record.Bytes)
		})
	}
}

// pack compresses a stream with a program; that for zstd is not on each machine.
func pack(t *testing.T, program string, stream []byte) []byte {
	t.Helper()
	if program == "zstd" {
		encoder, err := zstd.NewWriter(nil)
		require.NoError(t, err)
		return encoder.EncodeAll(stream, nil)
	}
	cmd := exec.Command(program, "--stdout")
	cmd.Stdin = bytes.NewReader(stream)
	packed, err := cmd.Output()
	require.NoError(t, err)
	return packed
}

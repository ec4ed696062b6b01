// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/tarblock"
)

// fuzzLimits are small, so that no archive takes long.
var fuzzLimits = Limits{Entries: 200, Bytes: 1 << 20, Sparse: 1 << 20}

// unpackHere unpacks an archive as a child does, but on a thread of this process, of which the fuzzer sees what code is run.
func unpackHere(dir string, archive []byte) (result Result, list string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with this function
		if err = unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
			return
		}
		if err = enterTarget(dir); err != nil {
			return
		}
		u := newUnpacker(layerPolicy, fuzzLimits, Result{})
		err = u.unpackStream(bytes.NewReader(archive))
		result = u.result
		var out bytes.Buffer
		if listed := listTree(&out); listed != nil {
			panic(listed)
		}
		list = out.String()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		panic("the archive takes more than a minute")
	}
	return result, list, err
}

// repairHeaders corrects the checksums of what stands where headers are due, so that most mutations of an archive are read.
func repairHeaders(archive []byte) []byte {
	archive = bytes.Clone(archive)
	for rest := archive; len(rest) >= tarblock.Size; {
		if tarblock.IsZero(rest[:tarblock.Size]) {
			break
		}
		tarblock.SetType(rest, rest[typeAt])
		size := parseSize(rest[sizeBegin:sizeEnd])
		if flag := rest[typeAt]; flag >= '1' && flag <= '6' {
			size = 0
		}
		skip := tarblock.Size + size + (-size & (tarblock.Size - 1))
		if skip > int64(len(rest)) || skip <= 0 {
			break
		}
		rest = rest[skip:]
	}
	return archive
}

// FuzzUnpack unpacks arbitrary archives: nothing beside the tree changes, no limit is exceeded, and nothing that a policy leaves out is in
// the tree.
func FuzzUnpack(f *testing.F) {
	if !nstest.IsRoot() {
		f.Skip("needs root")
	}
	for _, s := range allSamples(f) {
		for _, layer := range s.layers {
			if len(layer) <= 32<<10 {
				f.Add([]byte(layer), false)
			}
		}
	}
	base := f.TempDir()
	require.NoError(f, os.WriteFile(filepath.Join(base, "outside"), []byte("untouched"), 0o644))
	dir := filepath.Join(base, "tree")
	f.Fuzz(func(t *testing.T, archive []byte, repair bool) {
		if repair {
			archive = repairHeaders(archive)
		}
		require.NoError(t, os.Mkdir(dir, 0o755))
		defer os.RemoveAll(dir)
		result, list, err := unpackHere(dir, archive)
		if err != nil {
			assert.NotContains(t, err.Error(), "\n", "one line")
		}
		assert.LessOrEqual(t, result.Entries, fuzzLimits.Entries+1)
		assert.LessOrEqual(t, result.Bytes, fuzzLimits.Bytes)
		for line := range strings.Lines(list) {
			_, words, _ := strings.Cut(line, " ") // a name may have anything
			for _, bad := range []string{"type=char", "type=block", " xattr.security.", " xattr.trusted.", " xattr.user.overlay."} {
				assert.NotContains(t, words, bad)
			}
		}
		text, err := os.ReadFile(filepath.Join(base, "outside"))
		require.NoError(t, err)
		assert.Equal(t, "untouched", string(text))
		names, err := os.ReadDir(base)
		require.NoError(t, err)
		assert.Len(t, names, 2, "nothing new beside the tree")
	})
}

// FuzzStream reads arbitrary streams: the same bytes make the same headers in pieces of any size, and the reader ends.
func FuzzStream(f *testing.F) {
	for _, s := range allSamples(f) {
		for _, layer := range s.layers {
			if len(layer) <= 32<<10 {
				f.Add([]byte(layer), true)
			}
		}
	}
	f.Fuzz(func(t *testing.T, archive []byte, repair bool) {
		if repair {
			archive = repairHeaders(archive)
		}
		whole, err := io.ReadAll(newStream(bytes.NewReader(archive)))
		pieces, again := io.ReadAll(newStream(&oneByteReader{bytes.NewReader(archive)}))
		assert.Equal(t, whole, pieces)
		assert.Equal(t, err == nil, again == nil)
		assert.LessOrEqual(t, len(whole), len(archive))
	})
}

type oneByteReader struct{ r io.Reader }

func (o *oneByteReader) Read(p []byte) (int, error) { return o.r.Read(p[:min(len(p), 1)]) }

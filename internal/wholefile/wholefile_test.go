// SPDX-License-Identifier: Apache-2.0

package wholefile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFileIsReplacedAsAWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	defer syscall.Umask(syscall.Umask(0o077))
	require.NoError(t, os.WriteFile(path+Suffix, []byte("what a killed writer left, and longer"), 0o600))
	for _, put := range []func(string, []byte, os.FileMode) error{Write, Save} {
		reader, err := os.Create(path)
		require.NoError(t, err)
		require.NoError(t, put(path, []byte("text"), 0o644))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "text", string(got))
		st, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o644), st.Mode())
		was, err := reader.Stat()
		require.NoError(t, err)
		assert.Zero(t, was.Size(), "who had the file open still has that of before")
		reader.Close()
		assert.NoFileExists(t, path+Suffix)
	}
}

func TestWhatCannotBeWrittenIsLeftAsItWas(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(path, []byte("before"), 0o600))
	for name, plant := range map[string]func(string) error{
		"symlink":   func(at string) error { return os.Symlink(filepath.Join(dir, "elsewhere"), at) },
		"FIFO":      func(at string) error { return syscall.Mkfifo(at, 0o600) },
		"directory": func(at string) error { return os.Mkdir(at, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, plant(path+Suffix))
			t.Cleanup(func() { os.Remove(path + Suffix) })
			assert.ErrorContains(t, Save(path, []byte("after"), 0o600), path+Suffix)
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, "before", string(got))
			assert.NoFileExists(t, filepath.Join(dir, "elsewhere"))
		})
	}
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	assert.Error(t, Write(path, nil, 0o600))
	assert.NoFileExists(t, path+Suffix)
}

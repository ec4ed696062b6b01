// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gojail/gojail/internal/nstest"
)

// readMapping returns the content of all files.
func readMapping(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	files := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(text)
	}
	return files
}

func TestJobMapping(t *testing.T) {
	dir := filepath.Join(rootsDir(t), "mapping")
	f := everything() // GPU 3, and instance 9 of GPU 0
	require.NoError(t, f.WriteJobMapping(dir))
	assert.Equal(t, map[string]string{"3": "17\n", "0.9": "17\n"}, readMapping(t, dir))

	f.jobs = append(f.jobs, job{id: "18", gpus: []gpu{{index: "3", device: "nvidia3"}, {device: "tty62"}}})
	nstest.WriteFile(t, dir+"/5", "16\n")
	nstest.WriteFile(t, dir+"/1.2", "16\n")
	nstest.WriteFile(t, dir+"/README", "of somebody else\n")
	before, err := os.Stat(dir + "/0.9")
	require.NoError(t, err)
	require.NoError(t, f.WriteJobMapping(dir))
	assert.Equal(t, map[string]string{"3": "17\n18\n", "0.9": "17\n", "README": "of somebody else\n"}, readMapping(t, dir))
	after, err := os.Stat(dir + "/0.9")
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "what is right stays as it is")

	f.jobs = nil
	require.NoError(t, f.WriteJobMapping(dir))
	assert.Equal(t, map[string]string{"README": "of somebody else\n"}, readMapping(t, dir))
}

func TestJobMappingThatCannotBeWritten(t *testing.T) {
	dir := rootsDir(t)
	assert.ErrorContains(t, everything().WriteJobMapping(dir+"/no/such"), "cannot write the job mapping of dcgm-exporter in "+dir+"/no/such: no such file or directory")
	require.NoError(t, os.Mkdir(dir+"/open", 0o755))
	require.NoError(t, os.Chmod(dir+"/open", 0o777))
	assert.ErrorContains(t, everything().WriteJobMapping(dir+"/open"), "cannot write the job mapping")
	assert.Empty(t, readMapping(t, dir+"/open"))
	require.NoError(t, os.MkdirAll(dir+"/bad/3", 0o755))
	err := everything().WriteJobMapping(dir + "/bad")
	assert.ErrorContains(t, err, dir+"/bad/3")
	assert.NotContains(t, err.Error(), "\n")
	assert.FileExists(t, dir+"/bad/0.9", "the others are written")
}

// TestRemoveStaleMapping: what no run has written or found right for a minute tells of jobs that may have ended.
func TestRemoveStaleMapping(t *testing.T) {
	dir := rootsDir(t)
	f := everything()
	require.NoError(t, f.WriteJobMapping(dir))
	nstest.WriteFile(t, dir+"/README", "of somebody else\n")
	nstest.WriteFile(t, dir+"/7", "16\n")
	require.NoError(t, os.MkdirAll(dir+"/8/x", 0o755))
	old := time.Now().Add(-2 * time.Minute)
	for _, name := range []string{"3", "0.9", "7", "8", "README"} {
		require.NoError(t, os.Chtimes(dir+"/"+name, old, old))
	}
	f.jobs[0].gpus = f.jobs[0].gpus[:1]
	assert.ErrorContains(t, f.WriteJobMapping(dir), dir+"/8", "is no file; the others are right, and those without a job gone")
	assert.Equal(t, unix.EIO, RemoveStaleMapping(dir, unix.EIO), "they are of this minute")
	for _, name := range []string{"3", "8", "README"} {
		require.FileExists(t, dir+"/3")
		require.NoError(t, os.Chtimes(dir+"/"+name, old, old))
	}
	require.NoError(t, os.Chmod(dir, 0o777))
	assert.Equal(t, unix.EIO, RemoveStaleMapping(dir, unix.EIO), "anybody could have written it")
	require.NoError(t, os.Chmod(dir, 0o755))
	assert.EqualError(t, RemoveStaleMapping(dir, unix.EIO), "input/output error; 1 files of the job mapping in "+dir+", which were out of date, are removed")
	assert.NoFileExists(t, dir+"/3")
	assert.DirExists(t, dir+"/8")
	assert.FileExists(t, dir+"/README")
	assert.Equal(t, unix.EIO, RemoveStaleMapping(dir+"/nosuch", unix.EIO))
}

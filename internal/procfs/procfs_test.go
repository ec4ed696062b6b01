// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseStat(t *testing.T) {
	const rest = " 1 2 3 4 5 69238880 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"
	s, ok := ParseStat([]byte("7 (a ) (b) D" + rest))
	assert.True(t, ok)
	assert.Equal(t, Stat{Name: "a ) (b", State: 'D', Kernel: true, Start: 4711}, s)
	s, ok = ParseStat([]byte("17 (a) Z 1 17 17 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711\n"))
	assert.True(t, ok, "no field after it")
	assert.Equal(t, Stat{Name: "a", State: 'Z', Start: 4711}, s)
	for _, text := range []string{"", "7 (a", "17 a) S", "7 )a( S" + rest, "7 (a) S 1 2 3", "7 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x"} {
		_, ok := ParseStat([]byte(text))
		assert.False(t, ok, text)
	}
}

func TestReadStat(t *testing.T) {
	s, found, err := ReadStat("/proc", os.Getpid())
	require.NoError(t, err)
	assert.True(t, found)
	assert.NotZero(t, s.Start)
	assert.False(t, s.Kernel)

	proc := t.TempDir()
	_, found, err = ReadStat(proc, 7)
	require.NoError(t, err)
	assert.False(t, found)

	require.NoError(t, os.MkdirAll(filepath.Join(proc, "7"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(proc, "7/stat"), []byte("nonsense"), 0o600))
	_, _, err = ReadStat(proc, 7)
	require.EqualError(t, err, "cannot parse "+proc+"/7/stat")
}

func TestListNumbers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"10", "9", "self", "1a", "100"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	numbers, err := ListNumbers(dir)
	require.NoError(t, err)
	assert.Equal(t, []int{9, 10, 100}, numbers)
	_, err = ListNumbers(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	numbers, err = ListNumbers("/proc")
	require.NoError(t, err)
	assert.Contains(t, numbers, os.Getpid())
}

func TestReadName(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "7"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "7/comm"), []byte(" a\nb \n"), 0o600))
	assert.Equal(t, " a\nb ", ReadName(dir, 7))
	assert.Empty(t, ReadName(dir, 8))
}

func TestReadMeminfo(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "meminfo"), []byte(
		"MemTotal:       16384 kB\nHugePages_Total:       3\nA: -1 kB\nB: x kB\n"+
			"C: 1 MB\nD 1 kB\nE:\n: 9\nF: 1 kB"), 0o600))
	values, err := ReadMeminfo(dir)
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"MemTotal": 16384, "HugePages_Total": 3, "": 9, "F": 1}, values)
	_, err = ReadMeminfo(filepath.Join(dir, "none"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	values, err = ReadMeminfo("/proc")
	require.NoError(t, err)
	assert.Positive(t, values["MemTotal"])
}

func TestReadStatus(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "7"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "7/status"), []byte(
		"Name:\ta: b\\nUid:\t9\nState:\tT (stopped)\nUid:\t0\t1\t2\t3\nGroups:\t4 5 \nCapEff\n"), 0o600))
	values, err := ReadStatus(dir, 7, "Uid", "Name", "Groups", "State", "CapEff", "None")
	require.NoError(t, err)
	assert.Equal(t, []string{"0\t1\t2\t3", "a: b\\nUid:\t9", "4 5", "T (stopped)", "", ""}, values)
	_, err = ReadStatus(dir, 8, "Uid")
	require.Error(t, err)
	assert.True(t, HasEnded(err))

	uid := strconv.Itoa(os.Getuid())
	assert.True(t, IsOf(os.Getpid(), uid))
	assert.False(t, IsOf(os.Getpid(), uid+"1"))
	assert.False(t, IsOf(1<<30, "0"), "it has ended")
}

func TestSetName(t *testing.T) {
	before, err := os.ReadFile("/proc/self/comm")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, SetName(strings.TrimSpace(string(before)))) })
	require.NoError(t, SetName("gojail-named"))
	threads, err := filepath.Glob("/proc/self/task/*/comm")
	require.NoError(t, err)
	require.NotEmpty(t, threads)
	for _, thread := range threads {
		if name, err := os.ReadFile(thread); err == nil { // otherwise it has ended
			assert.Equal(t, "gojail-named\n", string(name))
		}
	}
}

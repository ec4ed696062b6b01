// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// module writes a package whose test TestSometimes fails as long as there is no
// file, which it makes.
func module(t *testing.T, more string) (command []string) {
	dir := t.TempDir()
	t.Chdir(dir)
	source := `package m
import ("os"; "testing")
func TestGood(t *testing.T) {}
func TestSometimes(t *testing.T) {
	t.Run("part", func(t *testing.T) {
		if _, err := os.Stat("been"); err != nil { os.WriteFile("been", nil, 0o600); t.Error("for the first time") }
	})
}
` + more
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module m\ngo 1.24\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m_test.go"), []byte(source), 0o600))
	return []string{"go", "test", "-json", "-count=1"}
}

func TestWhatFailsOnceIsNamed(t *testing.T) {
	r := newRun()
	assert.Zero(t, runOnce(r, module(t, ""), []string{"."}))
	assert.Equal(t, []string{"m TestSometimes/part"}, r.again)
	assert.Equal(t, []string{"m TestGood", "m TestSometimes/part"}, r.passed)
}

func TestWhatFailsTwiceHasFailed(t *testing.T) {
	r := newRun()
	assert.Equal(t, 1, runOnce(r, module(t, "func TestNever(t *testing.T) { t.Error() }"), []string{"."}))
	assert.Equal(t, []string{"m TestNever"}, r.failed)
}

func TestNoSecondTry(t *testing.T) {
	for name, more := range map[string]string{
		"of many":                   "func TestA(t *testing.T) { t.Error() }\nfunc TestB(t *testing.T) { t.Error() }",
		"where others were not run": "func TestPanic(t *testing.T) { panic(0) }",
		"of what does not build":    "func TestX(t *testing.T) { x() }",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun()
			assert.Equal(t, 1, runOnce(r, module(t, more), []string{"."}))
			assert.Empty(t, r.again)
		})
	}
	assert.Equal(t, 1, runOnce(newRun(), []string{"/nosuch"}, nil))
	assert.Equal(t, 1, runOnce(newRun(), []string{"/bin/sh", "-c", "echo nothing was run; exit 2"}, nil))
}

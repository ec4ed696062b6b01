// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// suite is the name of a module whose tests may have a second try.
const suite = "m/tests/slurm"

// module writes a package whose test TestSometimes fails as long as there is no
// file, which it makes.
func module(t *testing.T, name, more string) (command []string) {
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
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+name+"\ngo 1.24\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m_test.go"), []byte(source), 0o600))
	return []string{"go", "test", "-json", "-count=1"}
}

func TestWhatFailsOnceIsNamed(t *testing.T) {
	r := newRun()
	assert.Zero(t, runOnce(r, module(t, suite, ""), []string{"."}))
	assert.Equal(t, []string{suite + " TestSometimes/part"}, r.again)
	assert.Equal(t, []string{suite + " TestGood", suite + " TestSometimes/part"}, r.passed)
}

func TestWhatFailsTwiceHasFailed(t *testing.T) {
	r := newRun()
	assert.Equal(t, 1, runOnce(r, module(t, suite, "func TestNever(t *testing.T) { t.Error() }"), []string{"."}))
	assert.Equal(t, []string{suite + " TestNever"}, r.failed)
}

func TestNoSecondTry(t *testing.T) {
	for name, more := range map[string]string{
		"of many":                   "func TestA(t *testing.T) { t.Error() }\nfunc TestB(t *testing.T) { t.Error() }",
		"where others were not run": "func TestPanic(t *testing.T) { panic(0) }",
		"of what does not build":    "func TestX(t *testing.T) { x() }",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun()
			assert.Equal(t, 1, runOnce(r, module(t, suite, more), []string{"."}))
			assert.Empty(t, r.again)
		})
	}
	t.Run("of a package that starts no Slurm", func(t *testing.T) {
		r := newRun()
		assert.Equal(t, 1, runOnce(r, module(t, "m", ""), []string{"."}))
		assert.Empty(t, r.again)
	})
	assert.Equal(t, 1, runOnce(newRun(), []string{"/nosuch"}, nil))
	assert.Equal(t, 1, runOnce(newRun(), []string{"/bin/sh", "-c", "echo nothing was run; exit 2"}, nil))
}

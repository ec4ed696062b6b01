// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// suite is the name of a module whose tests may have a second try.
const suite = "m/tests/slurm"

// module writes a package whose test TestSometimes fails as long as there is no
// file, which it makes.
func module(t *testing.T, name, more string) command {
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
	again := []string{"go", "test", "-json", "-count=1"}
	return command{argv: append(again, "."), again: again}
}

// runAll returns the run of the command and its exit status.
func runAll(c command) (*run, int) {
	r := newRun(nil)
	r.runTwice(c)
	return r, r.close(io.Discard)
}

func TestWhatFailsOnceIsNamed(t *testing.T) {
	r, code := runAll(module(t, suite, ""))
	assert.Zero(t, code)
	assert.Equal(t, []string{suite + " TestSometimes/part"}, r.again)
	assert.Equal(t, []string{suite + " TestGood", suite + " TestSometimes/part"}, r.passed)
}

func TestWhatFailsTwiceHasFailed(t *testing.T) {
	r, code := runAll(module(t, suite, "func TestNever(t *testing.T) { t.Error() }"))
	assert.Equal(t, 1, code)
	assert.Equal(t, []string{suite + " TestNever"}, r.failed)
}

func TestNoSecondTry(t *testing.T) {
	for name, more := range map[string]string{
		"of many":                   "func TestA(t *testing.T) { t.Error() }\nfunc TestB(t *testing.T) { t.Error() }",
		"where others were not run": "func TestPanic(t *testing.T) { panic(0) }",
		"of what does not build":    "func TestX(t *testing.T) { x() }",
	} {
		t.Run(name, func(t *testing.T) {
			r, code := runAll(module(t, suite, more))
			assert.Equal(t, 1, code)
			assert.Empty(t, r.again)
		})
	}
	for _, name := range []string{"m", "m/tests/escape", "m/tests/session"} {
		t.Run("of "+name, func(t *testing.T) {
			r, code := runAll(module(t, name, ""))
			assert.Equal(t, 1, code)
			assert.Empty(t, r.again)
		})
	}
	_, code := runAll(command{argv: []string{"/nosuch"}})
	assert.Equal(t, 1, code)
	_, code = runAll(command{argv: []string{"/bin/sh", "-c", "echo nothing was run; exit 2"}})
	assert.Equal(t, 1, code)
}

// TestWhatHangsHasFailed: a test that never ends, of a command that exits with 0 when it is killed, is named.
func TestWhatHangsHasFailed(t *testing.T) {
	before := patience
	t.Cleanup(func() { patience = before })
	patience = 5 * time.Second
	r, code := runAll(command{argv: []string{"/bin/sh", "-c", `
event() { printf '{"Action":"%s","Package":"m","Test":"%s","Output":"x"}\n' "$1" "$2"; }
event run TestGood; event pass TestGood; event run TestHangs; event output TestHangs; sleep 3600; exit 0`}})
	assert.Equal(t, 1, code)
	assert.Contains(t, r.broken, "nothing has begun or ended for 5s, killed: m TestHangs")
	r, code = runAll(command{argv: []string{"/bin/sh", "-c", `for i in $(seq 60); do sleep 0.1; echo '{"Action":"pass","Package":"m","Test":"'$i'"}'; done`}})
	assert.Zero(t, code, "that takes long, and tells: %v", r.broken)
}

// TestSecondTryOfAColumn: the script of a column is told which release, also when it runs a test again.
func TestSecondTryOfAColumn(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte(`#!/bin/sh
event() { printf '{"Action":"%s","Package":"`+suite+`","Test":"%s","Output":"FAIL\\n"}\n' "$1" "$2"; }
event start
if [ "$*" != "-run ^(Told)$ `+suite+`" ]; then event fail "T$GOJAIL_RELEASE"; event output; event fail; exit 1; fi
[ "$GOJAIL_RELEASE" = old ] || exit 2
event pass Told; event pass
`), 0o700))
	c := command{argv: []string{script, "all"}, again: []string{script}}
	assert.Zero(t, runColumns([]string{"old"}, c, nil))
	assert.Equal(t, 1, runColumns([]string{"new"}, c, nil), "it is run again by another name")
	c.again = nil
	assert.Equal(t, 1, runColumns([]string{"old"}, c, nil), "nobody said how")
}

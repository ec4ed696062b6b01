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

// partsOf returns a command with a shell function that prints an event, and one that prints the events of a package that failed at its end.
func partsOf(t *testing.T, script string) command {
	path := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(path, []byte(`#!/bin/sh
event() { printf '{"Action":"%s","Package":"`+suite+`","Test":"%s","Output":"%s"}\n' "$1" "$2" "$3"; }
fails() { event run "$1"; event fail "$1"; event output "" 'FAIL\n'; event fail; exit 1; }
event start
`+script+"\nevent pass\n"), 0o700))
	return command{argv: []string{path}, again: []string{path}}
}

// TestParts has two parts with tests of one package.
func TestParts(t *testing.T) {
	before := patience
	t.Cleanup(func() { patience = before })
	for _, row := range []struct {
		name, script string
		want         run // passed, failed, again and broken
	}{
		{"all pass", `event run "T${1%/2}"; event pass "T${1%/2}"`, run{passed: []string{suite + " T1", suite + " T2"}}},
		{"each part has its second try", `case "$*" in
1/2) event pass TestA; fails TestX;; 2/2) fails TestY;; "-run ^(TestX)$ ` + suite + `") event pass TestX;; "-run ^(TestY)$ ` + suite + `") event pass TestY;; *) exit 2; esac`,
			run{passed: []string{suite + " TestA", suite + " TestX", suite + " TestY"}, again: []string{suite + " TestX", suite + " TestY"}}},
		{"one fails at both tries", `case "$1" in 2/2) event pass TestGood;; *) fails TestBad; esac`,
			run{passed: []string{suite + " TestGood"}, failed: []string{suite + " TestBad"}}},
		{"one is cut short after a failed test", `case "$1" in
1/2) fails TestBad;; 2/2) event fail TestWorse; event fail; exit 1;; *) event pass TestBad; esac`,
			run{passed: []string{suite + " TestBad"}, failed: []string{suite + " TestWorse"}, again: []string{suite + " TestBad"}}},
		{"one panics", `case "$1" in 1/2) event pass TestGood;; *) event output "" panic; event fail; exit 1; esac`,
			run{passed: []string{suite + " TestGood"}, broken: []string{suite}}},
		{"one ends early", `event pass "T${1%/2}"; case "$1" in 1/2) exit 0; esac`,
			run{passed: []string{suite + " T1", suite + " T2"}, broken: []string{suite + notEnded}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRun(nil)
			r.runParts(partsOf(t, row.script), 2)
			assert.Equal(t, row.want.passed, r.passed)
			assert.Equal(t, row.want.failed, r.failed)
			assert.Equal(t, row.want.again, r.again)
			assert.Equal(t, row.want.broken, r.broken)
			assert.Equal(t, len(row.want.failed)+len(row.want.broken) > 0, r.close(io.Discard) != 0)
		})
	}
	t.Run("one hangs beside one that prints", func(t *testing.T) {
		patience = 10 * time.Second
		r := newRun(nil)
		r.runParts(partsOf(t, `case "$1" in
1/2) event run TestHangs; event output TestHangs; echo $$ >"$0.pid"; sleep 3600;;
2/2) until [ -s "$0.pid" ] && ! kill -0 "$(cat "$0.pid")" 2>/dev/null; do event run T; event output T; event pass T; sleep 0.1; done; event pass TestLast; esac`), 2)
		assert.Equal(t, []string{"nothing has begun or ended for 10s, killed: " + suite + " TestHangs"}, r.broken[:1])
		assert.Contains(t, r.passed, suite+" TestLast")
		assert.NotZero(t, r.close(io.Discard))
	})
	t.Run("one skips", func(t *testing.T) {
		r := newRun(func(reason string) bool { return reason == "needs gcc" })
		r.runParts(partsOf(t, `event output "T${1%/2}" 'a_test.go:7: needs gcc\n'; case "$1" in 1/2) event skip T1;; 2/2) event pass T2; esac`), 2)
		assert.Equal(t, 1, r.close(io.Discard))
		assert.Contains(t, r.failed, suite+" T1: skipped, but this machine has what it needs: needs gcc")
	})
}

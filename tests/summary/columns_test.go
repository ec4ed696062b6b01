// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func columnOf(name string, events ...event) column {
	c := column{name: name, run: newRun(nil)}
	for _, e := range events {
		c.run.addEvent(e)
	}
	return c
}

func TestColumns(t *testing.T) {
	bad := event{Action: "fail", Package: "p", Test: "TestGood"}
	columns := []column{columnOf("1.0", start, good, ended), columnOf("2.0", start, bad, event{Action: "fail", Package: "p"}),
		{name: "3.0", run: newRun(nil), missing: "no such release"}}
	var out bytes.Buffer
	printTable(&out, columns)
	assert.Equal(t, []string{"test", "1.0", "2.0", "3.0", "TestGood", "ok", "FAIL", "-"}, strings.Fields(out.String()))
	out.Reset()
	assert.Equal(t, 1, closeColumns(&out, columns))
	assert.Contains(t, out.String(), "skipped 3.0: no such release\n0 passed, 0 failed, 1 skipped")
	assert.Zero(t, closeColumns(&out, []column{columns[0], columns[2]}), "a missing release is a skip")
	assert.Equal(t, 1, closeColumns(&out, columns[2:]), "nothing ran")
}

func TestRunColumns(t *testing.T) {
	script := `echo '{"Action":"start","Package":"p"}'; echo '{"Action":"pass","Package":"p","Test":"T'$GOJAIL_RELEASE'"}'; echo '{"Action":"pass","Package":"p"}'`
	assert.Zero(t, runColumns([]string{"a", "b"}, command{argv: []string{"sh", "-c", script}}, nil))
	assert.Equal(t, 1, runColumns([]string{"a"}, command{argv: []string{"sh", "-c", script + "; exit 1"}}, nil), "a command that fails without a failed test")
	assert.Equal(t, 1, runColumns([]string{"a"}, command{argv: []string{"sh", "-c", "echo not here; exit 3"}}, nil))
	assert.Zero(t, runColumns([]string{"a", "b"}, command{argv: []string{"sh", "-c", script + "; [ $GOJAIL_RELEASE = a ] || exit 3"}}, nil))
}

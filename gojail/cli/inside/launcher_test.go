// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/cli/cmdline"
	"github.com/gojail/gojail/gojail/config"
)

// What the launcher left behind with its descriptors keeps nobody waiting.
func TestAnswerThatNeverEnds(t *testing.T) {
	dir := t.TempDir()
	launcher := "#!/bin/sh\nsleep 605 & echo $! >" + dir + "/pid\n"
	require.NoError(t, os.WriteFile(dir+"/gojail-launcher", []byte(launcher), 0o755))
	n := &localNode{&cmdline.Node{}}
	n.LibDir = dir
	before := time.Now()
	err := n.buildSandbox(&config.Config{Deadline: 100 * time.Millisecond}, &config.Jail{Name: "tiny"}, "run-1", &Runner{person: nobody}, "")
	assert.ErrorContains(t, err, "did not give one by the deadline")
	assert.Less(t, time.Since(before), time.Minute)
	text, err := os.ReadFile(dir + "/pid")
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

func TestAnswerOfTheLauncher(t *testing.T) {
	for text, want := range map[string]string{
		"pid 7\nok\n":               "",
		"error jail is on fire\n":   "jail is on fire",
		"pid 7\nerror no storage\n": "no storage",
		"":                          "ended without an answer",
		"pid 7\n":                   "ended without an answer",
	} {
		_, err := readAnswer(strings.NewReader(text))
		if want == "" {
			assert.NoError(t, err, text)
		} else {
			assert.ErrorContains(t, err, want)
		}
	}
}

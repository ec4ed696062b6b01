// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestContinuousIntegration runs .ci/run on a table of its own: its last lines name what was run, what was not begun and why, and second tries.
func TestContinuousIntegration(t *testing.T) {
	script, err := os.ReadFile("../../.ci/run")
	require.NoError(t, err)
	const again = "[ $(umask) = 0022 ] && echo passed only at the second try p TestX >>\"$GOJAIL_SECOND_TRIES\""
	for _, test := range []struct {
		name, plan string
		passes     bool
		want       []string // last lines
	}{
		{"all pass", "test\t33\ttrue\nvm\t10\t" + again + "\nlaunch\t5\ttrue\n", true, []string{
			"passed     test, 0 minutes: true", "passed     vm, 0 minutes: " + again, "passed     launch, 0 minutes: true",
			"passed only at the second try p TestX", "1 needed a second try"}},
		{"one fails", "test\t33\ttrue\nvm\t10\tfalse\nlaunch\t5\ttrue\n", false, []string{
			"passed     test, 0 minutes: true", "FAILED     vm, after 0 minutes: false", "not begun  launch: vm has failed: true", "0 needed a second try"}},
		{"one would not end", "test\t33\ttrue\nvm\t73\ttrue\nlaunch\t5\ttrue\n", true, []string{
			"passed     test, 0 minutes: true", "not begun  vm: 0 minutes have passed, and it takes about 73: true", "passed     launch, 0 minutes: true", "0 needed a second try"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.MkdirAll(dir+"/.ci", 0o700))
			require.NoError(t, os.WriteFile(dir+"/.ci/run", script, 0o700))
			require.NoError(t, os.WriteFile(dir+"/plan", []byte(test.plan), 0o600))
			require.NoError(t, os.WriteFile(dir+"/go", []byte("#!/bin/sh\ncat plan\n"), 0o700))
			cmd := exec.Command("sh", "-c", "umask 077; exec "+dir+"/.ci/run")
			cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			assert.Equal(t, test.passes, err == nil, "%s", out)
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			require.GreaterOrEqual(t, len(lines), len(test.want), "%s", out)
			assert.Equal(t, test.want, lines[len(lines)-len(test.want):])
		})
	}
}

// TestLoadEndsWithItsShell: the busy loops of tests/load end with it, and where it is killed.
func TestLoadEndsWithItsShell(t *testing.T) {
	for name, end := range map[string]string{"at its end": "exit 3", "when it is killed": "kill -9 $PPID"} {
		t.Run(name, func(t *testing.T) {
			list := filepath.Join(t.TempDir(), "children")
			cmd := exec.Command("../load", "2", "sh", "-c", fmt.Sprintf(`
while [ "$(cat /proc/$PPID/task/$PPID/children | wc -w)" -lt 3 ] || grep -qv '^bash$' $(for p in $(cat /proc/$PPID/task/$PPID/children); do [ $p = $$ ] || echo /proc/$p/comm; done); do :; done
for p in $(cat /proc/$PPID/task/$PPID/children); do [ $p = $$ ] || echo $p; done >%s; %s`, list, end))
			err := cmd.Run()
			assert.Error(t, err, "its status is the command's")
			text, err := os.ReadFile(list)
			require.NoError(t, err)
			loops := strings.Fields(string(text))
			require.Len(t, loops, 2)
			for _, pid := range loops {
				var number int
				fmt.Sscan(pid, &number)
				require.Greater(t, number, 1)
				t.Cleanup(func() {
					if t.Failed() {
						syscall.Kill(number, syscall.SIGKILL)
					}
				})
				assert.Eventually(t, func() bool { return isGone(number) }, time.Minute, 10*time.Millisecond, "busy loop %d", number)
			}
		})
	}
}

// isGone reports whether a process has ended, if nobody has waited for it too.
func isGone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || syscall.Kill(pid, 0) != nil || strings.Contains(string(stat), ") Z ")
}

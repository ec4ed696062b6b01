// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/filelock"
)

// newScript returns a command that runs a script.
func newScript(t *testing.T, text string) Command {
	path := filepath.Join(t.TempDir(), "squeue")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	return Command{Path: path}
}

func TestRun(t *testing.T) {
	t.Setenv("SECRET", "x")
	c := newScript(t, `read line; echo "$line:$1:$MORE:$SECRET:$LC_ALL:$PWD"`)
	c.Args, c.Env, c.Input = []string{"one"}, []string{"MORE=y"}, "in\n"
	out, err := Run(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, "in:one:y::C:/\n", out)
}

func TestFailure(t *testing.T) {
	c := newScript(t, "echo out; echo Invalid job id specified >&2; echo more >&2; exit 3")
	out, err := Run(t.Context(), c)
	assert.Equal(t, "out\n", out)
	require.EqualError(t, err, c.Path+": exit status 3: Invalid job id specified")
	var failed *ExitError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "Invalid job id specified\nmore", failed.Stderr)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)

	_, err = Run(t.Context(), Command{Path: "/nowhere"})
	require.EqualError(t, err, "/nowhere: fork/exec /nowhere: no such file or directory")
}

func TestDeadline(t *testing.T) {
	c := newScript(t, "exec sleep 600")
	_, err := runBriefly(t, c)
	require.EqualError(t, err, c.Path+" does not answer in time")
	var late *lateError
	require.ErrorAs(t, err, &late)
}

func runBriefly(t *testing.T, c Command) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	return Run(ctx, c)
}

// TestLock: what the command started is killed with it, and releases the lock.
func TestLock(t *testing.T) {
	c := newScript(t, "sleep 600 & wait")
	c.Lock = filepath.Join(t.TempDir(), "lock")
	_, err := runBriefly(t, c)
	require.EqualError(t, err, c.Path+" does not answer in time")
	var held *os.File // once the last of those that were killed is gone
	require.Eventually(t, func() bool { held, err = filelock.Try(c.Lock); return err == nil }, time.Minute, time.Millisecond)

	_, err = Run(t.Context(), c)
	require.EqualError(t, err, "cannot run "+c.Path+": an earlier one is stuck; to find it: fuser -v "+c.Lock)

	require.NoError(t, held.Close())
	c = newScript(t, "flock --nonblock $0.lock true || echo held")
	c.Lock = c.Path + ".lock"
	out, err := Run(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, "held\n", out)
}

// TestStdout: output goes to a writer without a limit, and a writer that refuses more ends the command.
func TestStdout(t *testing.T) {
	var text strings.Builder
	c := newScript(t, "echo out; echo broken >&2; exit 3")
	c.Stdout = &text
	out, err := Run(t.Context(), c)
	assert.ErrorContains(t, err, "exit status 3: broken")
	assert.Equal(t, ":out\n", out+":"+text.String())

	pr, pw := io.Pipe()
	c = newScript(t, "yes")
	c.Stdout = pw
	pr.CloseWithError(errors.New("enough"))
	_, err = Run(t.Context(), c)
	assert.Error(t, err)
}

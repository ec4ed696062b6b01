// SPDX-License-Identifier: Apache-2.0

package slurmcmd

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// script is a command of Slurm.
func script(t *testing.T, text string) Command {
	path := filepath.Join(t.TempDir(), "squeue")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700))
	return Command{Path: path}
}

func TestRun(t *testing.T) {
	t.Setenv("SECRET", "x")
	c := script(t, `read line; echo "$line:$1:$SLURM_CONF:$MORE:$SECRET:$LC_ALL:$PWD"`)
	c.Args, c.Conf, c.Env, c.Input = []string{"one"}, "/etc/slurm.conf", []string{"MORE=y"}, "in\n"
	out, err := Run(t.Context(), c)
	require.NoError(t, err)
	assert.Equal(t, "in:one:/etc/slurm.conf:y::C:/\n", out)
}

func TestFailure(t *testing.T) {
	c := script(t, "echo out; echo Invalid job id specified >&2; echo more >&2; exit 3")
	out, err := Run(t.Context(), c)
	assert.Equal(t, "out\n", out)
	require.EqualError(t, err, c.Path+": exit status 3: Invalid job id specified")
	var failed *ExitError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "Invalid job id specified\nmore", failed.Stderr)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)

	_, err = Run(t.Context(), Command{Path: "/nowhere"})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestDeadline(t *testing.T) {
	c := script(t, "exec sleep 600")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := Run(ctx, c)
	require.EqualError(t, err, c.Path+" does not answer in time")
	var late *lateError
	require.ErrorAs(t, err, &late)
}

// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// writeScontrol makes a directory with a scontrol that is a script.
func writeScontrol(t *testing.T, dir, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(dir+"/scontrol", []byte("#!/bin/sh\n"+text+"\n"), 0o755))
}

// TestOutputWithoutEnd: what is not parsed any more has a limit, too.
func TestOutputWithoutEnd(t *testing.T) {
	c := &Commands{Dir: t.TempDir(), Timeout: time.Minute}
	writeScontrol(t, c.Dir, "exec cat /dev/zero")
	_, err := run(t.Context(), c, func(io.Reader) (int, error) { return 1, nil }, "scontrol")
	assert.EqualError(t, err, "cannot parse the output of scontrol: it is longer than 1073741824 bytes")
	_, err = c.Nodes(t.Context())
	assert.ErrorContains(t, err, "cannot parse the output of scontrol: bufio.Scanner: token too long")
}

// TestRelease: JSON is what the releases have that have v0.0.42. Commands that are replaced are asked again.
func TestRelease(t *testing.T) {
	c := &Commands{Dir: t.TempDir(), Timeout: time.Minute, Format: Auto}
	assert.Error(t, c.FindRelease(t.Context()))
	installed := time.Unix(1e9, 0)
	for text, want := range map[string]string{
		"slurm-wlm 22.05.8": "22.05.8 text", "slurm 23.11.10": "23.11.10 text", "slurm-wlm 24.11.5": "24.11.5 json", "slurm 25.05.0-0rc1": "25.05.0 json",
		"slurm 26.05.5": "26.05.5 json", "slurm 26.11.0": "26.11.0 text",
	} {
		writeScontrol(t, c.Dir, "echo "+text)
		installed = installed.Add(time.Hour)
		require.NoError(t, os.Chtimes(c.Dir+"/scontrol", time.Time{}, installed))
		require.NoError(t, c.FindRelease(t.Context()))
		release, format := c.Describe()
		assert.Equal(t, want, release+" "+format)
	}
	writeScontrol(t, c.Dir, "echo slurm of today")
	assert.ErrorContains(t, c.FindRelease(t.Context()), "which has no release")
	c.Format = Text
	_, format := c.Describe()
	assert.Equal(t, Text, format)
}

// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/command"
)

// writeScontrol makes a directory with a scontrol that is a script.
func writeScontrol(t *testing.T, dir, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(dir+"/scontrol", []byte("#!/bin/sh\n"+text+"\n"), 0o755))
}

// TestListDirs: the places of Slurm's programs, without PATH.
func TestListDirs(t *testing.T) {
	t.Setenv("PATH", "/home/alice/bin")
	assert.Equal(t, []string{"/usr/bin", "/usr/local/bin", "/opt/slurm/bin", "/usr/local/slurm/bin"}, ListDirs("bin", nil))
	assert.Equal(t, []string{"/opt/slurm-25.11/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/slurm/sbin", "/usr/local/slurm/sbin"},
		ListDirs("sbin", []string{"/opt/slurm-25.11"}))
}

// TestOutputWithoutEnd: what is not parsed any more has a limit, too.
func TestOutputWithoutEnd(t *testing.T) {
	c := &Commands{Dir: t.TempDir(), Timeout: time.Minute}
	writeScontrol(t, c.Dir, "exec cat /dev/zero")
	_, err := read(t.Context(), c.program("scontrol"), func(io.Reader) (int, error) { return 1, nil })
	assert.EqualError(t, err, "cannot parse the output of scontrol: it is longer than 1073741824 bytes")
	_, err = c.Nodes(t.Context())
	assert.ErrorContains(t, err, "cannot parse the output of scontrol: ")
}

// dataParsers are the versions of Slurm's plugins data_parser, of v0.0.N, by release (src/plugins/data_parser of its last version).
var dataParsers = map[string][]int{
	"22.05.11": nil, "23.02.8": {39}, "23.11.11": {39, 40}, "24.05.8": {39, 40, 41}, "24.11.7": {40, 41, 42}, "25.05.8": {40, 41, 42, 43},
	"25.11.7": {41, 42, 43, 44}, "26.05.5": {42, 43, 44, 45}, "26.11.0-0rc1": {43, 44, 45, 46},
}

// TestRelease: JSON is what the releases have that have v0.0.42. Commands that are replaced are asked again.
func TestRelease(t *testing.T) {
	c := &Commands{Dir: t.TempDir(), Timeout: time.Minute, Format: Auto}
	assert.Error(t, c.FindRelease(t.Context()))
	installed := time.Unix(1e9, 0)
	for version, parsers := range dataParsers {
		text, _, _ := strings.Cut(version, "-")
		want := text + " " + Text
		if slices.Contains(parsers, 42) {
			want = text + " " + JSON
		}
		writeScontrol(t, c.Dir, "echo slurm-wlm "+version)
		installed = installed.Add(time.Hour)
		require.NoError(t, os.Chtimes(c.Dir+"/scontrol", time.Time{}, installed))
		require.NoError(t, c.FindRelease(t.Context()))
		release, format := c.Describe()
		assert.Equal(t, want, release+" "+format)
		asks, _ := strconv.Atoi(strings.TrimPrefix(c.jsonFlag(), "--json=v0.0."))
		assert.Equal(t, slices.Contains(parsers, 42) || slices.Contains(parsers, 43), slices.Contains(parsers, asks), version)
	}
	writeScontrol(t, c.Dir, "echo slurm of today")
	assert.ErrorContains(t, c.FindRelease(t.Context()), "which has no release")
	c.release = "27.05.1"
	assert.Equal(t, "--json", c.jsonFlag())
	c.Format = Text
	_, format := c.Describe()
	assert.Equal(t, Text, format)
}

// TestWithoutPlugins: where Slurm's plugins for JSON are missing, it is asked for text, and for that alone the next time. Another
// failure is one. The first two are what 24.11 prints and does.
func TestWithoutPlugins(t *testing.T) {
	nodes, err := filepath.Abs("testdata/24.11/nodes.txt")
	require.NoError(t, err)
	for text, want := range map[string]string{
		"echo 'scontrol: error: load_plugins: unable to find plugin: serializer/json' >&2; kill -SEGV $$":                   "1 text",
		"echo 'scontrol: error: application/json output not supported by data_parser/v0.0.42' >&2; exit 1":                  "1 text",
		"echo 'scontrol: fatal: JSON plugin load failure' >&2; exit 1":                                                      "1 text",
		"echo 'slurm_load_node error: Unable to contact slurm controller (connect failure)' >&2; exit 1":                    "3 json",
		"echo \"scontrol: error: Couldn't find the specified plugin name for auth/munge looking at all files\" >&2; exit 1": "3 json",
	} {
		c := &Commands{Dir: t.TempDir(), Timeout: time.Minute, Format: Auto}
		asked := c.Dir + "/asked"
		writeScontrol(t, c.Dir, "case \"$*\" in\n--version) exec echo slurm 24.11.5;;\n*--json*) echo >>"+asked+"; "+text+";;\nesac\nexec cat "+nodes)
		require.NoError(t, c.FindRelease(t.Context()))
		for range 3 {
			n, err := c.Nodes(t.Context())
			if assert.Equal(t, want == "1 text", err == nil, text); err == nil {
				assert.Len(t, n.List, 2, text)
			}
		}
		lines, err := os.ReadFile(asked)
		require.NoError(t, err)
		_, format := c.Describe()
		assert.Equal(t, want, fmt.Sprint(len(lines), " ", format), text)
	}
}

// TestEnvironment: a variable that changes what Slurm's programs print is none of theirs.
func TestEnvironment(t *testing.T) {
	for _, name := range []string{"SQUEUE_FORMAT", "SINFO_FORMAT", "SQUEUE_STATES", "SCONTROL_ALL", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT", "SLURM_BITSTR_LEN", "LC_ALL", "TZ"} {
		t.Setenv(name, "odd")
	}
	dir := t.TempDir()
	writeScontrol(t, dir, "env | sort | grep -Ev '^(PWD|SHLVL|_|OLDPWD|PATH)='")
	text, err := Run(t.Context(), Program{Command: command.Command{Path: dir + "/scontrol", Env: []string{"MORE=1"}}, Conf: "/etc/s.conf", UTC: true})
	require.NoError(t, err)
	assert.Equal(t, "LC_ALL=C\nMORE=1\nSLURM_BITSTR_LEN=0\nSLURM_CONF=/etc/s.conf\nTZ=UTC0\n", text)
}

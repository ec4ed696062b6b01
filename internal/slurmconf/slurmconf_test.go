// SPDX-License-Identifier: Apache-2.0

package slurmconf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"":                            nil,
		"# nothing\n\n  \n":           nil,
		"A=1\nB=2":                    {"A=1", "B=2"},
		" A=1 # one\r\nB=2\r\n":       {"A=1", "B=2"},
		"A=1 \\\n  B=2 \\ \nC=3\nD=4": {"A=1   B=2 C=3", "D=4"},
		"NodeName=n\\\n1":             {"NodeName=n1"},
		"A=1 # one \\\nB=2":           {"A=1", "B=2"}, // a comment does not go on
		"A=1,\\ # one\n2":             {"A=1,2"},
		"A=1\\\n  B=2":                {"A=1  B=2"},
		"A=1 \\\n# one\nB=2":          {"A=1", "B=2"},
		"A=C\\#1 # sharp":             {"A=C#1"},
		"A=1\\\\\nB=2":                {"A=1\\", "B=2"},
		"A=1 \\":                      {"A=1"},
		"A=\"y z\" # one":             {`A="y z"`},
	} {
		assert.Equal(t, want, split(text), text)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	put("slurm.conf", "A=1\ninclude nodes.conf # ours\nInclude "+dir+"/d/more.conf\nIncludes=no\nB=2\n")
	put("nodes.conf", "NodeName=n[1-2] \\\nGres=gpu:8\n")
	put("d/more.conf", "INCLUDE beside.conf\n")
	put("d/beside.conf", "C=3")
	lines, err := Read(dir + "/slurm.conf")
	assert.NoError(t, err)
	assert.Equal(t, []string{"A=1", "NodeName=n[1-2] Gres=gpu:8", "C=3", "Includes=no", "B=2"}, lines)

	put("slurm.conf", "A=1\nInclude gone.conf\nB=2\n")
	lines, err = Read(dir + "/slurm.conf")
	assert.ErrorContains(t, err, dir+"/gone.conf: no such file")
	assert.Equal(t, []string{"A=1", "B=2"}, lines)

	put("slurm.conf", "A=1\nInclude slurm.conf\n")
	lines, err = Read(dir + "/slurm.conf")
	assert.ErrorContains(t, err, "too many nested includes")
	assert.Len(t, lines, depthMax+1)

	_, err = Read(dir + "/none.conf")
	assert.ErrorIs(t, err, os.ErrNotExist)
}

// SPDX-License-Identifier: Apache-2.0

package site

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/cdi"
	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/gojail/plan"
	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/rootpath"
)

// cdiNode is a node with one CDI file, whose device is /dev/zero under its own name,
// a library and a program.
func cdiNode(t *testing.T) (source cdi.Source, file string) {
	t.Helper()
	if !nstest.IsRoot() {
		t.Skip("needs root: only root's files are read")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/libx.so.1", nil, 0o644))
	require.NoError(t, os.WriteFile(dir+"/x-smi", nil, 0o755))
	file = filepath.Join(dir, "cdi", "x.json")
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(`{"cdiVersion":"0.7.0","kind":"x.com/gpu","devices":[
		{"name":"0","containerEdits":{"deviceNodes":[{"path":"/dev/zero"}]}}],
		"containerEdits":{"env":["X_DEVICES=void"],"additionalGids":[44],"deviceNodes":[{"path":"/dev/full"}],
		"mounts":[{"hostPath":"DIR/libx.so.1","containerPath":"/usr/lib/libx.so.1"},{"hostPath":"DIR/x-smi","containerPath":"/usr/bin/x-smi"}],
		"hooks":[{"hookName":"createContainer","path":"/bin/nvidia-cdi-hook","args":["nvidia-cdi-hook","update-ldcache","--folder","/usr/lib"]}]}}`,
		"DIR", dir)), 0o644))
	return cdi.Source{Dirs: []string{filepath.Dir(file)}}, file
}

func TestReadCDI(t *testing.T) {
	source, file := cdiNode(t)
	c, err := config.ParseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"\ncdi = [\"x.com/gpu=0\"]\n[jail.b]\nroot = \"/j\"\n", "n1")
	require.NoError(t, err)
	a, h := c.Jails["a"], &node.Hardware{}
	before := Key(c, h, a)
	h.GPUs = [][]string{{"/dev/zero"}}
	h.ReadCDI(c, source)
	require.NoError(t, h.CDI["a"].Err)
	assert.Nil(t, h.CDI["b"])
	assert.Equal(t, [][]string{{"/dev/zero"}}, h.JobDevices(a))
	uid := uint32(0)
	assert.Equal(t, &uid, h.CDI["a"].Edits.Devices[0].UID)
	assert.Equal(t, []plan.Variable{{Name: "X_DEVICES", Value: "void", Prepend: false}, {Name: "LD_LIBRARY_PATH", Value: "/run/gojail/cdi/lib", Prepend: true}, {Name: "PATH", Value: "/run/gojail/cdi/bin", Prepend: true}}, plan.Environment(h.CDI["a"].Edits))
	site, err := compile(c, facts{hardware: h, accounts: noFacts().accounts}, map[string]string{"a": "k"}, nil, fixedTime)
	require.NoError(t, err)
	assert.Contains(t, site, "\nuntil 0\n")
	assert.Contains(t, site, "\nenv X_DEVICES=void\nprepend LD_LIBRARY_PATH=/run/gojail/cdi/lib\nprepend PATH=/run/gojail/cdi/bin\ngpu 0 /dev/zero\n")

	// Another content, or another library in the same place, is another template.
	with := Key(c, h, a)
	assert.NotEqual(t, before, with)
	assert.Equal(t, []string{"supplementary group 44"}, h.CDI["a"].Edits.Unhandled)
	h.ReadCDI(c, source)
	assert.Equal(t, with, Key(c, h, a))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "void", "all", 1)), 0o644))
	h.ReadCDI(c, source)
	changed := Key(c, h, a)
	assert.NotEqual(t, with, changed)
	library := filepath.Join(filepath.Dir(file), "../libx.so.1")
	require.NoError(t, os.WriteFile(library+".new", nil, 0o644))
	require.NoError(t, os.Rename(library+".new", library))
	h.ReadCDI(c, source)
	assert.NotEqual(t, changed, Key(c, h, a))
}

// TestLackingCDI: a jail whose devices cannot be had starts no job, and is looked at
// again soon; a node that has no such hardware does without.
func TestLackingCDI(t *testing.T) {
	source, file := cdiNode(t)
	root := t.TempDir()
	require.NoError(t, os.Mkdir(root+"/etc", 0o755))
	c, err := config.ParseConfig("default = \"a\"\n[jail.a]\nroot = \""+root+"\"\ncdi = [\"x.com/gpu=7\"]\n", "n1")
	require.NoError(t, err)
	a, h := c.Jails["a"], &node.Hardware{}
	h.ReadCDI(c, source)
	_, err = h.CDIEdits(a)
	assert.ErrorContains(t, err, "no CDI device x.com/gpu=7 in "+source.Dirs[0])
	site, err := compile(c, facts{hardware: h, accounts: noFacts().accounts}, nil, nil, fixedTime)
	require.NoError(t, err)
	assert.Contains(t, site, "\nuntil 1060\n")

	require.NoError(t, os.Remove(file))
	if rootpath.Exists(node.NvidiaDriver) {
		t.Skip("the rest needs a machine without NVIDIA's driver")
	}
	h.ReadCDI(c, source)
	assert.NoError(t, h.CDI["a"].Err)
	assert.Equal(t, []string{"x.com/gpu=7"}, h.CDI["a"].Absent)
	h.GPUs = [][]string{{"/dev/zero"}}
	h.ReadCDI(c, source)
	assert.ErrorContains(t, h.CDI["a"].Err, "no CDI device x.com/gpu=7")
}

func TestCDIEnvironmentIsRefused(t *testing.T) {
	source, file := cdiNode(t)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, env := range []string{`A=b\nseccomp -`, `A B=c`, "LONG=" + strings.Repeat("x", contract.PathMax)} {
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "X_DEVICES=void", env, 1)), 0o644))
		c := &config.Config{Jails: map[string]*config.Jail{"a": {CDI: []string{"x.com/gpu=0"}}}}
		h := &node.Hardware{}
		h.ReadCDI(c, source)
		assert.ErrorContains(t, h.CDI["a"].Err, "is not valid in an environment; correct the CDI file", env)
		assert.Empty(t, plan.Environment(h.CDI["a"].Edits))
	}
}

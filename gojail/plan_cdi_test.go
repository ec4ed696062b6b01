// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/cdi"
)

func deviceNode(path string, major, minor int64) specs.LinuxDevice {
	return specs.LinuxDevice{Path: path, Type: "c", Major: major, Minor: minor}
}

// TestPlanCDI: below /run and /dev, nowhere on the jail's storage; what other mounts
// bring and what jobs get by their allocation is left out.
func TestPlanCDI(t *testing.T) {
	c, j := planned(t, planConfig)
	facts := planFacts()
	plain, err := PlanJail(c, j, facts)
	require.NoError(t, err)
	facts.CDI = cdi.Edits{
		Devices: []specs.LinuxDevice{
			deviceNode("/dev/nvidia1", 195, 1), deviceNode("/dev/dri/card1", 226, 1), deviceNode("/dev/nvidia0", 195, 0),
			deviceNode("/dev/nvidia-caps/cap1", 7, 1), deviceNode("/dev/nvidiactl", 195, 255), deviceNode("/dev/null", 1, 3),
		},
		Mounts: []specs.Mount{
			bind(cdiDir+"/lib/libcuda.so.1", "ro"), bind("/etc/slurm/sub", "ro"), bind("/scratch/socket", "ro"),
		},
		Links: []cdi.Link{{Path: cdiDir + "/lib/libcuda.so", Target: "libcuda.so.1"}},
		Files: []cdi.File{{Path: "/proc/driver/nvidia/params", Content: "no"}},
	}
	facts.Given = []string{"/dev/nvidia1", "/dev/dri/card1", "/dev/dri/renderD128"}
	v, err := PlanJail(c, j, facts)
	require.NoError(t, err)
	var more []string
	for line := range strings.Lines(lines(v)) {
		if !strings.Contains(lines(plain), line) {
			more = append(more, strings.TrimSpace(line))
		}
	}
	assert.Equal(t, []string{
		"/run/gojail/cdi/lib/libcuda.so.1 bind = ro",
		"/dev/nvidiactl c 195:255",
		"/run/gojail/cdi/lib/libcuda.so -> libcuda.so.1",
	}, more)
	assert.Equal(t, []string{"/dev/dri"}, v.Dirs)
	assert.Equal(t, []File{{"/proc/driver/nvidia/params", "no"}}, v.Files)
	for _, target := range Targets(c, j, v) {
		assert.False(t, strings.HasPrefix(target.Path, "/run/") || strings.HasPrefix(target.Path, "/dev/"), "%s", target)
	}
}

// TestGiveNodes: what comes with the CDI device of a GPU goes with the GPU.
func TestGiveNodes(t *testing.T) {
	devices := []specs.LinuxDevice{
		deviceNode("/dev/nvidia0", 195, 0), deviceNode("/dev/dri/card1", 226, 1), deviceNode("/dev/nvidia1", 195, 1), deviceNode("/dev/dri/card2", 226, 2),
		deviceNode("/dev/nvidiactl", 195, 255), deviceNode("/dev/kfd", 1, 1),
	}
	each := map[string][]string{
		"/dev/nvidia0": {"/dev/nvidia0", "/dev/dri/card1", "/dev/kfd", "/dev/not-asked-for"},
		"/dev/nvidia1": {"/dev/nvidia1", "/dev/dri/card2", "/dev/kfd"},
	}
	with := func(file string) []string { return each[file] }
	assert.Equal(t, [][]string{
		{"/dev/nvidia1", "/dev/dri/card2", "/dev/kfd"}, {"/dev/nvidia0", "/dev/dri/card1", "/dev/kfd"}, nil,
	}, giveNodes(devices, [][]string{{"/dev/nvidia1"}, {"/dev/nvidia0"}, {"/dev/nvidia2"}}, with))
	assert.Equal(t, [][]string{{"/dev/nvidia0", "/dev/dri/card1", "/dev/kfd", "/dev/nvidia1", "/dev/dri/card2"}},
		giveNodes(devices, [][]string{{"/dev/nvidia0", "/dev/nvidia1"}}, with), "one GPU with two files")
	all := func(string) []string { return []string{"/dev/nvidia0", "/dev/nvidia1", "/dev/dri/card1"} }
	assert.Equal(t, [][]string{{"/dev/nvidia0", "/dev/dri/card1"}, {"/dev/nvidia1", "/dev/dri/card1"}},
		giveNodes(devices, [][]string{{"/dev/nvidia0"}, {"/dev/nvidia1"}}, all), "never another's file")
	j := &Jail{brought: &brought{given: [][]string{nil, {"/dev/nvidia0", "/dev/dri/card1"}}}}
	assert.Equal(t, [][]string{{}, {"/dev/nvidia0", "/dev/dri/card1"}}, j.perJob([][]string{{"/dev/nvidia1"}, {"/dev/nvidia0"}}))
}

// cdiNode is a node with one CDI file, whose device is /dev/zero under its own name,
// a library and a program.
func cdiNode(t *testing.T) (source cdi.Source, file string) {
	t.Helper()
	if os.Geteuid() != 0 {
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
	c, err := parseConfig("default = \"a\"\n[jail.a]\nroot = \"/j\"\ncdi = [\"x.com/gpu=0\"]\n[jail.b]\nroot = \"/j\"\n", "n1")
	require.NoError(t, err)
	a, b := c.Jails["a"], c.Jails["b"]
	before := c.Key(a)
	c.GPUs = [][]string{{"/dev/zero"}}
	c.readCDI(source)
	require.NoError(t, a.brought.err)
	assert.Nil(t, b.brought)
	assert.Equal(t, [][]string{{"/dev/zero"}}, a.perJob(c.GPUs))
	uid := uint32(0)
	assert.Equal(t, &uid, a.brought.edits.Devices[0].UID)
	assert.Equal(t, []Variable{{"X_DEVICES", "void", false}, {"LD_LIBRARY_PATH", "/run/gojail/cdi/lib", true}, {"PATH", "/run/gojail/cdi/bin", true}}, c.Environment(a))
	site, err := c.Site(noAccounts(), map[string]string{"a": "k"}, nil, fixedTime)
	require.NoError(t, err)
	assert.Contains(t, site, "\nuntil 0\n")
	assert.Contains(t, site, "\nenv X_DEVICES=void\nprepend LD_LIBRARY_PATH=/run/gojail/cdi/lib\nprepend PATH=/run/gojail/cdi/bin\ngpu 0 /dev/zero\n")

	// Another content, or another library in the same place, is another template.
	with := c.Key(a)
	assert.NotEqual(t, before, with)
	assert.Equal(t, []string{"supplementary group 44"}, a.brought.edits.Unhandled)
	c.readCDI(source)
	assert.Equal(t, with, c.Key(a))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "void", "all", 1)), 0o644))
	c.readCDI(source)
	changed := c.Key(a)
	assert.NotEqual(t, with, changed)
	library := filepath.Join(filepath.Dir(file), "../libx.so.1")
	require.NoError(t, os.WriteFile(library+".new", nil, 0o644))
	require.NoError(t, os.Rename(library+".new", library))
	c.readCDI(source)
	assert.NotEqual(t, changed, c.Key(a))
}

// TestLackingCDI: a jail whose devices cannot be had starts no job, and is looked at
// again soon; a node that has no such hardware does without.
func TestLackingCDI(t *testing.T) {
	source, file := cdiNode(t)
	root := t.TempDir()
	require.NoError(t, os.Mkdir(root+"/etc", 0o755))
	c, err := parseConfig("default = \"a\"\n[jail.a]\nroot = \""+root+"\"\ncdi = [\"x.com/gpu=7\"]\n", "n1")
	require.NoError(t, err)
	a := c.Jails["a"]
	c.readCDI(source)
	_, err = ReadHost(c, a, "/run/gojail")
	assert.ErrorContains(t, err, "no CDI device x.com/gpu=7 in "+source.Dirs[0])
	site, err := c.Site(noAccounts(), nil, nil, fixedTime)
	require.NoError(t, err)
	assert.Contains(t, site, "\nuntil 1060\n")

	require.NoError(t, os.Remove(file))
	if exists(nvidiaDriver) {
		t.Skip("the rest needs a machine without NVIDIA's driver")
	}
	c.readCDI(source)
	assert.NoError(t, a.brought.err)
	assert.Equal(t, []string{"x.com/gpu=7"}, a.brought.absent)
	c.GPUs = [][]string{{"/dev/zero"}}
	c.readCDI(source)
	assert.ErrorContains(t, a.brought.err, "no CDI device x.com/gpu=7")
}

func TestCDIEnvironmentIsRefused(t *testing.T) {
	source, file := cdiNode(t)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, env := range []string{`A=b\nseccomp -`, `A B=c`, "LONG=" + strings.Repeat("x", pathMax)} {
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "X_DEVICES=void", env, 1)), 0o644))
		c := &Config{Jails: map[string]*Jail{"a": {CDI: []string{"x.com/gpu=0"}}}}
		c.readCDI(source)
		assert.ErrorContains(t, c.Jails["a"].brought.err, "cannot be put into an environment; mend the CDI file", env)
		assert.Empty(t, c.Environment(c.Jails["a"]))
	}
}

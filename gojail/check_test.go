// SPDX-License-Identifier: Apache-2.0

package gojail

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checkedNode is a node on which everything is right.
type checkedNode struct {
	Node
	dir, root, conf string
}

func goodNode(t *testing.T) *checkedNode {
	t.Helper()
	needRoot(t)
	// Not below /tmp, which is private to each job: the check would say so.
	dir, err := os.MkdirTemp("/var/tmp", "gojail-check-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	n := &checkedNode{dir: dir, root: filepath.Join(dir, "jail"), conf: filepath.Join(dir, "slurm")}
	n.Node = Node{Config: filepath.Join(dir, "gojail.toml"), State: filepath.Join(dir, "state"), Name: "n1", LibDir: filepath.Join(dir, "lib")}
	for _, sub := range []string{"jail/proc", "jail/sys", "jail/dev", "jail/run", "jail/tmp", "jail/etc", "jail/spool", "slurm", "lib", "state"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, sub), 0o755))
	}
	for _, name := range []string{"spank_gojail.so", "gojail-launcher", "libgojail.so"} {
		require.NoError(t, exec.Command("cp", "/bin/true", filepath.Join(n.LibDir, name)).Run())
	}
	n.write(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\n", 0o644)
	n.write(t, "slurm/plugstack.conf", "required "+n.LibDir+"/spank_gojail.so config="+n.Config+" state="+dir+"/state\n", 0o644)
	n.configure(t, "")
	return n
}

func (n *checkedNode) configure(t *testing.T, more string) {
	t.Helper()
	n.write(t, "gojail.toml", "default = \"a\"\nscratch = \""+n.dir+"/scratch\"\n[slurm]\nconf = \""+n.conf+"\"\nspool = \"/spool\"\n"+
		"[jail.a]\nroot = \""+n.root+"\"\nslurm = false\nhost = []\n"+more, 0o644)
}

func (n *checkedNode) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(n.dir, name), []byte(text), mode))
}

// findings are the lines that are not OK.
func (n *checkedNode) findings() string {
	var list []string
	Check(n.Node, func(f Finding) {
		if f.Level != OK && f.Subject != "latency" { // that depends on the machine
			list = append(list, f.String())
		}
	})
	return strings.Join(list, "\n")
}

func TestCheckFindsNothingOnAGoodNode(t *testing.T) {
	n := goodNode(t)
	assert.Empty(t, n.findings())
	_, err := os.Stat(filepath.Join(n.dir, "scratch"))
	assert.True(t, os.IsNotExist(err), "a check makes nothing")
	entries, err := os.ReadDir(n.State)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

func TestCheckFinds(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(t *testing.T, n *checkedNode)
		want  string
	}{
		"no configuration":   {func(t *testing.T, n *checkedNode) { os.Remove(n.Config) }, "FAIL  configuration: "},
		"open configuration": {func(t *testing.T, n *checkedNode) { os.Chmod(n.Config, 0o666) }, "others can write it (mode 0666)"},
		"bad configuration":  {func(t *testing.T, n *checkedNode) { n.configure(t, "rot = 1") }, "jail.a.rot: unknown key"},
		"no library":         {func(t *testing.T, n *checkedNode) { os.Remove(n.LibDir + "/libgojail.so") }, "FAIL  installation: "},
		"cut library": {func(t *testing.T, n *checkedNode) {
			require.NoError(t, os.Truncate(n.LibDir+"/libgojail.so", 4096))
		}, "libgojail.so: is damaged or was cut short"},
		"empty library": {func(t *testing.T, n *checkedNode) {
			require.NoError(t, os.Truncate(n.LibDir+"/libgojail.so", 0))
		}, "libgojail.so: is damaged or was cut short"},
		"open library":   {func(t *testing.T, n *checkedNode) { os.Chmod(n.LibDir, 0o777) }, "FAIL  installation: "},
		"not executable": {func(t *testing.T, n *checkedNode) { os.Chmod(n.LibDir+"/gojail-launcher", 0o644) }, "is not executable"},
		"open state":     {func(t *testing.T, n *checkedNode) { os.Chmod(n.State, 0o777) }, "FAIL  state: "},
		"state a file": {func(t *testing.T, n *checkedNode) {
			os.Remove(n.State)
			n.write(t, "state", "", 0o600)
		}, "not a directory"},
		"open scratch": {func(t *testing.T, n *checkedNode) {
			require.NoError(t, os.Mkdir(n.dir+"/scratch", 0o755))
			require.NoError(t, os.Chmod(n.dir+"/scratch", 0o777))
		}, "FAIL  scratch: "},
		"no slurm.conf": {func(t *testing.T, n *checkedNode) { os.Remove(n.conf + "/slurm.conf") }, "slurm.conf is not there"},
		"no plugin": {func(t *testing.T, n *checkedNode) { n.write(t, "slurm/plugstack.conf", "", 0o644) },
			"FAIL  plugstack: no plugstack.conf of"},
		"optional plugin": {func(t *testing.T, n *checkedNode) {
			n.write(t, "slurm/plugstack.conf", "optional "+n.LibDir+"/spank_gojail.so", 0o644)
		}, "is optional: where it cannot be loaded, jobs run outside their jail"},
		"other state": {func(t *testing.T, n *checkedNode) {
			n.write(t, "slurm/plugstack.conf", "required "+n.LibDir+"/spank_gojail.so state=/run/%n config="+n.Config, 0o644)
		}, "the plugin uses state=/run/n1"},
		"other spool": {func(t *testing.T, n *checkedNode) { n.write(t, "slurm/slurm.conf", "", 0o644) },
			"/spool here, but SlurmdSpoolDir is /var/spool/slurmd"},
		"no munge": {func(t *testing.T, n *checkedNode) {
			n.configure(t, "[jail.b]\nroot = \""+n.root+"\"")
			text, err := os.ReadFile(n.Config)
			require.NoError(t, err)
			n.write(t, "gojail.toml", strings.Replace(string(text), "[slurm]", "[slurm]\nmunge = \"/nonexistent\"", 1), 0o644)
		}, "FAIL  munge: /nonexistent is not munge's socket"},
		"root gone":  {func(t *testing.T, n *checkedNode) { os.RemoveAll(n.root) }, "FAIL  jail a: jail root"},
		"root empty": {func(t *testing.T, n *checkedNode) { os.RemoveAll(n.root); os.Mkdir(n.root, 0o755) }, "is empty: is its storage mounted?"},
		"no target":  {func(t *testing.T, n *checkedNode) { os.Remove(n.root + "/tmp") }, "mount targets are missing in"},
		"no source": {func(t *testing.T, n *checkedNode) {
			n.configure(t, "[[jail.a.mounts]]\ndestination = \"/etc\"\nsource = \"/nonexistent\"")
		}, "/nonexistent (for /etc) is not there on this node"},
		"unknown user": {func(t *testing.T, n *checkedNode) { n.configure(t, "users = [\"no-such-user\"]") },
			"WARN  configuration: this node knows no user no-such-user of jail a"},
		"no device": {func(t *testing.T, n *checkedNode) { n.configure(t, "devices = [\"/dev/no-such*\"]") },
			"WARN  jail a: no device matches /dev/no-such*"},
		"rule": {func(t *testing.T, n *checkedNode) {
			n.configure(t, "[[jail.a.user_mounts]]\nsource = \"/nonexistent\"")
		},
			"WARN  jail a: users may mount /nonexistent"},
		"root of another": {func(t *testing.T, n *checkedNode) { os.Chown(n.root, 65534, 0) }, "WARN  jail a: "},
	} {
		t.Run(name, func(t *testing.T) {
			n := goodNode(t)
			test.spoil(t, n)
			assert.Contains(t, n.findings(), test.want)
		})
	}
}

func TestCheckTellsWhatCostsTime(t *testing.T) {
	n := goodNode(t)
	n.write(t, "slurm/slurm.conf", "SlurmdSpoolDir=/spool\nPrologFlags=Alloc,Contain\n", 0o644)
	var found []string
	Check(n.Node, func(f Finding) {
		if f.Subject == "latency" {
			found = append(found, f.String())
		}
	})
	assert.Contains(t, strings.Join(found, "\n"), "WARN  latency: PrologFlags=Alloc,Contain costs each job about 100 ms")
}

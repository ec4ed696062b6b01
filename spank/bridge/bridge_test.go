// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/contract"
	"github.com/gojail/gojail/internal/nstest"
)

// bridge is a built library and a C program that loads it.
type bridge struct{ library, host string }

// answer is what the C program printed.
type answer struct {
	result, text   string
	wallUs, cpuUs  int
	trees, entries []string
}

func buildBridge(t *testing.T) bridge {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc")
	}
	dir := t.TempDir()
	b := bridge{filepath.Join(dir, "libgojail.so"), filepath.Join(dir, "host")}
	for _, line := range [][]string{
		{"go", "build", "-buildmode=c-shared", "-o", b.library, "."},
		{"gcc", "-Wall", "-Wextra", "-Werror", "-I../../include", "-o", b.host, "testdata/host.c", "-ldl"},
	} {
		out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	return b
}

func (b bridge) callBridge(t *testing.T, version int, unshare, look string, words ...string) answer {
	t.Helper()
	args := append([]string{b.library, strconv.Itoa(version), unshare, look}, words...)
	out, err := exec.Command(b.host, args...).CombinedOutput()
	require.NoError(t, err, string(out))
	var a answer
	for line := range strings.Lines(string(out)) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word {
		case "result":
			a.result = rest
		case "text":
			a.text = rest
		case "tree":
			a.trees = append(a.trees, rest)
		case "name":
			a.entries = append(a.entries, rest)
		case "time":
			wall, cpu, _ := strings.Cut(rest, " ")
			a.wallUs, _ = strconv.Atoi(wall)
			a.cpuUs, _ = strconv.Atoi(cpu)
		}
	}
	slices.Sort(a.entries)
	return a
}

// testNode is a configuration, a state directory and a jail's root.
type testNode struct{ config, state, root string }

func (n testNode) formatWords(verb string, more ...string) []string {
	return append([]string{verb, "config=" + n.config, "state=" + n.state, "node=n1"}, more...)
}

const configText = `
default = "none"
allow_none = true
scratch = "DIR/scratch"
[jail.small]
root = "DIR/root"
slurm = false
host = []
[[jail.small.user_mounts]]
source = "DIR/open"
`

func newTestNode(t *testing.T) testNode {
	t.Helper()
	if !nstest.IsRoot() {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	require.NoError(t, os.Chmod(dir, 0o755))
	for _, name := range []string{"proc", "sys", "dev", "run", "tmp", "mnt", "etc", "var/spool/slurmd", "home"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "root", name), 0o755))
	}
	for _, name := range []string{"open/there", "closed", "scratch"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name), 0o755))
	}
	state, err := os.MkdirTemp("/run", "gojail-test-") // not in /tmp, which is private to each job
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(state)) })
	n := testNode{filepath.Join(dir, "gojail.toml"), state, filepath.Join(dir, "root")}
	n.writeConfig(t, strings.ReplaceAll(configText, "DIR", dir))
	return n
}

func (n testNode) writeConfig(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(n.config, []byte(text), 0o600))
}

func TestRefusals(t *testing.T) {
	b, n := buildBridge(t), newTestNode(t)
	for _, c := range []struct {
		version int
		words   []string
		want    string
	}{
		{99, n.formatWords("site"), "libgojail.so has version " + strconv.Itoa(contract.Version) + " of the contract, but the launcher has 99; reinstall gojail on this node"},
		{contract.Version, nil, "libgojail.so was called without a verb; reinstall gojail on this node"},
		{contract.Version, n.formatWords("frobnicate"), `libgojail.so: unknown verb "frobnicate"; known: allocated, boot, clean, earlier, ended, epilog, ids, jail, logout, mounts, net, netfiles, range, root, site, stage`},
		{contract.Version, n.formatWords("site", "colour=red"), `site: unknown word "colour=red"`},
		{contract.Version, n.formatWords("root", "jail=big"), `jail "big" is unknown; this node has: small`},
		{contract.Version, n.formatWords("mounts", "jail=small", "mounts=/a", "uid=1", "gid=1"), "--jail-mount=/a: must be SOURCE:DESTINATION"},
		{contract.Version, n.formatWords("mounts", "jail=small", "mounts=/a:/mnt", "uid=-1", "gid=1"), `mounts: uid="-1" is not a user or group id`},
		{contract.Version, n.formatWords("epilog", "job=../../etc"), `"../../etc" is not a job id`},
		{contract.Version, n.formatWords("earlier", "job=../../etc", "uid=1"), `"../../etc" is not a job id`},
		{contract.Version, n.formatWords("earlier", "job=login-1", "uid=1"), `"login-1" is not a job id`},
		{contract.Version, n.formatWords("earlier", "job=7", "uid=-1"), `earlier: uid="-1" is not a user`},
		{contract.Version, n.formatWords("earlier", "job=7", "uid=1", "begun=x"), `earlier: begun="x" is not a time`},
	} {
		a := b.callBridge(t, c.version, "0", "/nowhere", c.words...)
		assert.Equal(t, "-1", a.result, c.want)
		assert.Contains(t, a.text, c.want)
	}
	n.writeConfig(t, "default = [broken")
	a := b.callBridge(t, contract.Version, "0", "/nowhere", n.formatWords("site")...)
	assert.Equal(t, "-1", a.result)
	assert.Contains(t, a.text, n.config+": line 1: ")
	n.writeConfig(t, "default = \"none\"\nallow_none = true\n# "+strings.Repeat("x", 2000)+"\nkey\t = 1\n")
	a = b.callBridge(t, contract.Version, "0", "/nowhere", n.formatWords("site")...)
	assert.Contains(t, a.text, "line 4: key: unknown key")
}

func TestLongTextIsCut(t *testing.T) {
	b, n := buildBridge(t), newTestNode(t)
	a := b.callBridge(t, contract.Version, "0", "/nowhere", n.formatWords("site", strings.Repeat("x\n", 2000))...)
	assert.Equal(t, "-1", a.result)
	assert.Len(t, a.text, 1023)
}

func TestSite(t *testing.T) {
	b, n := buildBridge(t), newTestNode(t)
	a := b.callBridge(t, contract.Version, "0", "/nowhere", n.formatWords("site")...)
	require.Equal(t, "0", a.result, a.text)
	text, err := os.ReadFile(filepath.Join(n.state, "site"))
	require.NoError(t, err)
	assert.Contains(t, string(text), "jail small\n")
	// Generous: what is measured depends on the machine; this catches a runtime that grew.
	assert.Less(t, a.cpuUs, 500_000)
	t.Logf("loading the library and the verb site took %d us, %d us of CPU", a.wallUs, a.cpuUs)
}

func TestAssemble(t *testing.T) {
	b, n := buildBridge(t), newTestNode(t)
	a := b.callBridge(t, contract.Version, "1", "/", n.formatWords("jail", "jail=small")...)
	require.Equal(t, "0", a.result, a.text)
	assert.Equal(t, []string{"dev", "etc", "home", "mnt", "proc", "run", "sys", "tmp", "var"}, a.entries)
	t.Logf("jail took %d us, %d us of CPU", a.wallUs, a.cpuUs)
	text, err := os.ReadFile(filepath.Join(n.state, "jails/small/config.json"))
	require.NoError(t, err)
	assert.Contains(t, string(text), `"ociVersion"`)

	a = b.callBridge(t, contract.Version, "1", "/home", n.formatWords("stage", "jail=small")...)
	require.Equal(t, "0", a.result, a.text)
	t.Logf("stage took %d us, %d us of CPU", a.wallUs, a.cpuUs)

	require.NoError(t, os.RemoveAll(n.root))
	a = b.callBridge(t, contract.Version, "1", "/", n.formatWords("jail", "jail=small")...)
	assert.Equal(t, "jail root "+n.root+" does not exist", a.text)
}

// The test process stands in for the zygote: its root is the host's.
func TestMounts(t *testing.T) {
	b, n := buildBridge(t), newTestNode(t)
	dir := filepath.Dir(n.config)
	words := n.formatWords("mounts", "jail=small", "uid=65534", "gid=65534", "groups=1,2", "mounts="+dir+"/open/there:/mnt:ro")
	a := b.callBridge(t, contract.Version, "0", "/nowhere", words...)
	assert.Equal(t, "jail small has no template on this node at the moment; try again", a.text)

	stat, err := os.ReadFile("/proc/self/stat")
	require.NoError(t, err)
	fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
	require.NoError(t, os.MkdirAll(filepath.Join(n.state, "jails/small"), 0o700))
	record := strconv.Itoa(contract.Version) + " " + strconv.Itoa(os.Getpid()) + " " + fields[19] + " 0123456789abcdef 0\n"
	require.NoError(t, os.WriteFile(filepath.Join(n.state, "jails/small/zygote"), []byte(record), 0o600))

	a = b.callBridge(t, contract.Version, "0", "/nowhere", words...)
	require.Equal(t, "0", a.result, a.text)
	assert.Equal(t, []string{"/mnt 40755"}, a.trees)
	words[len(words)-1] = "mounts=" + dir + "/open/there:/mnt," + dir + "/closed:/srv"
	a = b.callBridge(t, contract.Version, "0", "/nowhere", words...)
	assert.Equal(t, "-1", a.result)
	assert.Equal(t, "--jail-mount="+dir+"/closed:/srv: "+dir+"/closed may not be mounted in jail small; permitted: "+dir+"/open", a.text)
	assert.Empty(t, a.trees)
}

func TestEpilogAndBoot(t *testing.T) {
	b, n := buildBridge(t), newTestNode(t)
	left := filepath.Join(filepath.Dir(n.config), "scratch/jobs/17/tmp")
	require.NoError(t, os.MkdirAll(left, 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(n.state, "jobs/17"), 0o700))
	a := b.callBridge(t, contract.Version, "0", n.state+"/jobs", n.formatWords("epilog", "job=17")...)
	require.Equal(t, "0", a.result, a.text)
	assert.NoDirExists(t, filepath.Dir(left))
	assert.Empty(t, a.entries)
	a = b.callBridge(t, contract.Version, "0", "/nowhere", n.formatWords("epilog", "job=17")...)
	assert.Equal(t, "0", a.result, a.text)
	a = b.callBridge(t, contract.Version, "0", "/nowhere", n.formatWords("boot")...)
	assert.Equal(t, "0", a.result, a.text)

	// The job ends in no time; its files are removed afterwards.
	require.NoError(t, os.MkdirAll(left+"/full", 0o700))
	jobs := filepath.Dir(filepath.Dir(left))
	a = b.callBridge(t, contract.Version, "0", "/nowhere", n.formatWords("epilog", "job=17", "deadline=500")...)
	assert.Equal(t, "0", a.result, a.text)
	assert.NoDirExists(t, filepath.Dir(left))
	assert.DirExists(t, jobs+"/.trash")
	a = b.callBridge(t, contract.Version, "0", "/nowhere", n.formatWords("clean", "job=17")...)
	assert.Equal(t, "0", a.result, a.text)
	assert.NoDirExists(t, jobs+"/.trash")
}

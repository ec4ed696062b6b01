// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
	"github.com/gojail/gojail/internal/version"
)

// testSite is a node with one jail whose programs are this machine's.
type testSite struct {
	dir, root string
	flags     []string
}

func newSite(t *testing.T) *testSite {
	t.Helper()
	if !nstest.IsRoot() {
		t.Skip("needs root")
	}
	t.Setenv("GOJAIL_TEST_COMMAND", "1") // gojail check starts itself again: this test binary, see TestMain
	// Not below /tmp, which is private to each job.
	dir, err := os.MkdirTemp("/var/tmp", "gojail-command-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	s := &testSite{dir: dir, root: filepath.Join(dir, "jail")}
	for _, name := range []string{"proc", "sys", "dev", "etc", "usr", "data"} {
		require.NoError(t, os.MkdirAll(filepath.Join(s.root, name), 0o755))
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if target, err := os.Readlink("/" + name); err == nil {
			require.NoError(t, os.Symlink(target, filepath.Join(s.root, name)))
		}
	}
	config := filepath.Join(dir, "gojail.toml")
	require.NoError(t, os.WriteFile(config, []byte(`default = "tiny"
scratch = "`+dir+`/scratch"
[jail.tiny]
root  = "`+s.root+`"
slurm = false
host  = ["/etc/passwd"]
[[jail.tiny.mounts]]
destination = "/usr"
source = "/usr"
options = ["rbind", "ro"]
[[jail.tiny.user_mounts]]
source = "/usr/lib"
`), 0o644))
	s.flags = []string{"--config=" + config, "--state=" + dir + "/state-%n", "--node=n1", "--libdir=../../build/lib/gojail"}
	return s
}

// gojail runs a command line in this process.
func (s *testSite) gojail(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := newCommand(&localNode{})
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(append(s.flags, args...))
	err := cmd.Execute()
	return out.String(), err
}

func TestInitThenSpec(t *testing.T) {
	s := newSite(t)
	out, err := s.gojail("init", "tiny")
	require.NoError(t, err)
	assert.Contains(t, out, "created directory /tmp\n")
	assert.Contains(t, out, "created file /etc/passwd\n")
	out, err = s.gojail("init", "tiny")
	require.NoError(t, err)
	assert.Equal(t, "nothing to create: jail tiny has all its mount targets\n", out)

	out, err = s.gojail("spec", "tiny")
	require.NoError(t, err)
	var spec specs.Spec
	require.NoError(t, json.Unmarshal([]byte(out), &spec))
	assert.Equal(t, s.root, spec.Root.Path)
	var own []string
	for _, m := range spec.Mounts[len(spec.Mounts)-8:] {
		own = append(own, m.Destination)
	}
	assert.Equal(t, []string{"/run", "/etc/passwd", "/proc", "/sys/fs/cgroup", "/dev/pts", "/dev/mqueue", "/tmp", "/dev/shm"}, own, "the job's own mounts come last")
	assert.Contains(t, spec.Linux.Namespaces, specs.LinuxNamespace{Type: specs.PIDNamespace})
	assert.True(t, spec.Process.NoNewPrivileges)
	assert.Contains(t, spec.Process.Capabilities.Bounding, "CAP_CHOWN")
	assert.NotContains(t, spec.Process.Capabilities.Bounding, "CAP_SYS_ADMIN")
	assert.Equal(t, specs.ActErrno, spec.Linux.Seccomp.DefaultAction)
	out, err = s.gojail("spec", "tiny", "--stage")
	require.NoError(t, err)
	assert.Contains(t, out, s.root+"/data")
	assert.NotContains(t, out, s.root+"/etc")
}

func TestListAndSweepOnANodeWithoutJobs(t *testing.T) {
	s := newSite(t)
	out, err := s.gojail("ls")
	require.NoError(t, err)
	assert.Equal(t, "No job has a sandbox on this node.\n", out)
	assert.DirExists(t, s.dir+"/state-n1", "%n is the node's name")
	out, err = s.gojail("ls", "--json")
	require.NoError(t, err)
	assert.JSONEq(t, `{"sandboxes": [], "templates": []}`, out)
	out, err = s.gojail("sweep")
	require.NoError(t, err)
	assert.Equal(t, "nothing to remove\n", out)
	out, err = s.gojail("reload")
	require.NoError(t, err)
	assert.Contains(t, out, "nothing to do")
}

func TestStateDirectoryIsThePlugins(t *testing.T) {
	s := newSite(t)
	config := filepath.Join(s.dir, "gojail.toml")
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	text = []byte(strings.Replace(string(text), "[jail.tiny]", "[slurm]\nconf = \""+s.dir+"\"\n[jail.tiny]", 1))
	require.NoError(t, os.WriteFile(config, text, 0o644))
	plugstack := "required /nowhere/spank_gojail.so state=" + s.dir + "/of-plugin-%n\n"
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "plugstack.conf"), []byte(plugstack), 0o644))
	s.flags = []string{"--config=" + config, "--node=n1"}
	_, err = s.gojail("ls")
	require.NoError(t, err)
	assert.DirExists(t, s.dir+"/of-plugin-n1")
}

func TestMistakesAreNamed(t *testing.T) {
	s := newSite(t)
	for want, args := range map[string][]string{
		`jail "tniy" is unknown; this node has: tiny`:                    {"init", "tniy"},
		"gojail init needs one argument: the name of a jail":             {"init"},
		"write -- before the command: gojail run tiny -- ls /":           {"run", "tiny", "ls", "/"},
		"gojail run needs the name of a jail":                            {"run", "--", "ls"},
		`there is no user "no-such-user" on this node`:                   {"run", "tiny", "-u", "no-such-user"},
		"must be SOURCE:DESTINATION":                                     {"run", "tiny", "--jail-mount=/usr"},
		"missing argument: give the name of a jail, or --job":            {"spec"},
		"job 17 has no such sandbox on this node; see: gojail ls":        {"spec", "--job=17"},
		"gojail check takes no argument: it checks all jails":            {"check", "debian"},
		"gojail ls takes no argument: it lists all jobs and jails":       {"ls", "17"},
		"gojail sweep takes no argument: it handles all jobs":            {"sweep", "17"},
		`unknown command "frob"`:                                         {"frob"},
		"cannot start gojail-launcher; is gojail installed in /nowhere?": {"run", "tiny", "--libdir=/nowhere", "--", "ls"},
	} {
		_, err := s.gojail(args...)
		assert.ErrorContains(t, err, want)
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	for _, c := range newCommand(&localNode{}).Commands() {
		if c.Name() == "completion" || c.Name() == "help" {
			continue
		}
		assert.NotEmpty(t, c.Short, c.Name())
		assert.NotEmpty(t, c.Long, c.Name())
		assert.Contains(t, c.Example, "gojail "+c.Name(), c.Name())
		for line := range strings.Lines(c.Long) {
			assert.LessOrEqual(t, len(line), 81, line)
		}
	}
}

func TestJailNamesComplete(t *testing.T) {
	s := newSite(t)
	var out bytes.Buffer
	cmd := newCommand(&localNode{})
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{"__complete"}, append(s.flags, "init", "")...))
	require.NoError(t, cmd.Execute())
	assert.True(t, strings.HasPrefix(out.String(), "tiny\n"), out.String())
}

func TestInitOfATreeWithoutAShell(t *testing.T) {
	s := newSite(t)
	config := filepath.Join(s.dir, "gojail.toml")
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	typo := filepath.Join(s.dir, "jial")
	require.NoError(t, os.MkdirAll(typo+"/data", 0o755)) // an empty one is refused anyway
	head, _, _ := strings.Cut(strings.Replace(string(text), s.root, typo, 1), "[[")
	require.NoError(t, os.WriteFile(config, []byte(head), 0o644))
	_, err = s.gojail("init", "tiny")
	assert.ErrorContains(t, err, typo+" has no /bin/sh: it is probably the wrong tree, and nothing was created; correct root = in "+config+", or run: gojail init --force tiny")
	entries, err := os.ReadDir(typo)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
	out, err := s.gojail("init", "--force", "tiny")
	require.NoError(t, err)
	assert.Contains(t, out, "created directory /proc")
}

func TestRelativeConfiguration(t *testing.T) {
	s := newSite(t)
	t.Chdir(s.dir)
	s.flags = append(s.flags, "--config=gojail.toml")
	_, err := s.gojail("spec", "tiny")
	assert.NoError(t, err)
}

func TestVersion(t *testing.T) {
	s := newSite(t)
	out, err := s.gojail("--version")
	require.NoError(t, err)
	assert.Contains(t, out, "gojail "+version.Text()+", contract ")
}

// TestErrorsDoNotControlTheTerminal: an error may quote names of users' files, or what a registry answers.
func TestErrorsDoNotControlTheTerminal(t *testing.T) {
	err := fmt.Errorf("jail a has a link to %s", "x\x1b]0;title\a\nOK\u009b")
	assert.Equal(t, []string{"jail a has a link to x?]0;title?; OK?"}, formatError(err))
	root := newCommand(&localNode{})
	root.SetArgs([]string{"vfx"})
	assert.Equal(t, []string{`unknown command "vfx" for "gojail"; similar: vf; see: gojail --help`}, formatError(root.Execute()))
}

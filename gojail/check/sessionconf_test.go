// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/gojail/config"
	"github.com/gojail/gojail/gojail/node"
	"github.com/gojail/gojail/internal/nstest"
)

// TestCheckOfSessionConf: a name of the node is a failure where sessions depend on it, and a link is one always.
func TestCheckOfSessionConf(t *testing.T) {
	nstest.NeedRoot(t)
	host := node.HostName()
	for name, test := range map[string]struct {
		text, arguments string
		login, link     bool
		want            string // HOST: this machine's name
	}{
		"none":                  {"", "", false, false, "WARN  sessions: gojail-session takes this node for HOST, but its name in Slurm is other"},
		"good":                  {"node=other\n", "", false, false, ""},
		"the plugin's state":    {"state=/s/%n\nnode=other\n", "state=/s/%n", false, false, ""},
		"for another node":      {"state=/s/%n\n", "state=/s/%n", false, false, "FAIL  sessions: gojail-session takes this node for HOST"},
		"another state":         {"node=other\n", "state=/s", false, false, "FAIL  sessions: gojail-session uses state=/run/gojail, but the plugin state=/s"},
		"a login node":          {"", "", true, false, "FAIL  sessions: gojail-session takes this node for HOST"},
		"a linked directory":    {"node=other\n", "", false, true, "follows no symbolic link there: every session is refused"},
		"blank at the end":      {"node=other \n", "", false, false, "is no line of this file"},
		"a comment after blank": {"node=other\n # x\n", "", false, false, "is no line of this file"},
	} {
		dir := t.TempDir()
		etc := filepath.Join(dir, "etc/gojail")
		require.NoError(t, os.MkdirAll(filepath.Dir(etc), 0o755))
		if test.link {
			require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
			require.NoError(t, os.Symlink(filepath.Join(dir, "real"), etc))
		} else {
			require.NoError(t, os.Mkdir(etc, 0o755))
		}
		require.NoError(t, os.WriteFile(filepath.Join(etc, "session.conf"), []byte(test.text), 0o644))
		found := ""
		c := &checker{node: Node{Name: "other", rootIn: dir}, config: &config.Config{Login: config.Login{Here: test.login}},
			report: func(f Finding) { found += f.String() + "\n" }}
		c.checkSessionConfig(node.SlurmConf{Plugstack: []node.SpankPlugin{
			{Path: "/x/spank_gojail.so", Required: true, Arguments: strings.Fields(test.arguments)}}})
		want := strings.ReplaceAll(test.want, "HOST", host)
		if want == "" {
			assert.Empty(t, found, name)
			continue
		}
		assert.Contains(t, found, want, name)
		assert.Equal(t, 1, strings.Count(found, "\n"), "%s: %s", name, found)
	}
}

// TestCheckOfWrappers: a program that sshd starts may start gojail-session itself; no program is a failure.
func TestCheckOfWrappers(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "wrap"), nil, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "text"), nil, 0o644))
	for command, want := range map[string]string{
		"/wrap -x":              "WARN  sessions: sshd starts /wrap -x: sessions are in a jail only if that starts /lib/gojail-session",
		"/text":                 "FAIL  sessions: sshd starts /text, which is not /lib/gojail-session",
		"/none":                 "FAIL  sessions: sshd starts /none, which is not",
		"wrap":                  "FAIL  sessions: sshd starts wrap, which is not",
		`"/wrap"`:               `FAIL  sessions: sshd starts "/wrap", which is not`,
		"/lib/gojail-session -": "FAIL  sessions: sshd starts /lib/gojail-session -, which is not",
		"none":                  "WARN  sessions: sshd has no ForceCommand",
	} {
		found := ""
		c := &checker{node: Node{rootIn: dir, LibDir: "/lib"}, report: func(f Finding) { found += f.String() + "\n" }}
		c.checkForceCommand(map[string]string{"forcecommand": command}, nil)
		assert.Contains(t, found, want, command)
	}
}

// SPDX-License-Identifier: Apache-2.0

package escape_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

// whole reports whether the long races run.
var whole = os.Getenv("GOJAIL_ESCAPE") == "all"

// attackPath is the program of the attacks, on the node and in both jails.
const attackPath = "/opt/attack"

// outside is the path of a file that exists on the node and in no jail.
const outside = "/etc/gojail-outside"

// jails are the names of the jails. "owned" is configured like "closed", and the attacker owns its contents.
var jails = []string{"open", "closed", "owned"}

// allOff switches off every part of a jail's isolation that can be switched off.
const allOff = `namespaces = []
cgroups = "node"
abstract_sockets = "node"
hidepid = false
no_new_privs = false
capabilities = ["ALL"]
seccomp = "none"
options = []
`

// defaults are the keys of the closed jails that differ from the defaults.
const defaults = `local = ["/mnt/data"]
jail_root = ["self", "range"]
`

// site is a cluster with the jails and the attacks.
type site struct{ *harness.Cluster }

var common harness.Shared[*site]

func TestMain(m *testing.M) { os.Exit(common.Main(m)) }

// sharedSite returns the common site, with its configuration in place.
func sharedSite(t *testing.T) *site {
	t.Helper()
	s := common.Get(t, func() (*site, error) { return newSite(harness.Options{}) })
	s.ShowLogs(t)
	t.Cleanup(func() {
		if !assert.True(t, s.WaitIdle(), "a test leaves its nodes idle: %s", s.Drained()) {
			for _, node := range harness.Nodes {
				s.Resume(node)
			}
		}
	})
	return s
}

// newSite starts a cluster with the jails and the program; after an error, the site may be there and must be stopped.
func newSite(options harness.Options) (*site, error) {
	program, err := buildAttack()
	if err != nil {
		return nil, err
	}
	options.Plugin, options.Jails, options.Config = true, jails, configuration
	const ids = "alice:100000:65536\nbob:200000:65536\n"
	options.Files = map[string]string{attackPath: program, outside: "a file of the node\n", "/etc/subuid": ids, "/etc/subgid": ids}
	c, err := harness.Up(options)
	if err != nil {
		return nil, err
	}
	s := &site{c}
	for _, jail := range jails {
		if err := os.WriteFile(c.Path("/srv/jails/"+jail+attackPath), []byte(program), 0o755); err != nil {
			return s, err
		}
	}
	return s, s.makeTrap()
}

// buildAttack compiles the program, static so that it runs in any jail.
func buildAttack() (program string, err error) {
	dir, err := os.MkdirTemp("", "gojail-escape-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	sources, _ := filepath.Glob("attack/*.c")
	path := filepath.Join(dir, "attack")
	args := append([]string{"-static", "-O1", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-o", path}, sources...)
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("escape: gcc: %w\n%s", err, out)
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// configuration is gojail.toml.
var configuration = `default = "closed"
allow_none = true
scratch = "/var/lib/gojail/%n"
deadline = "` + (10 * time.Second * harness.Slow).String() + `"
[slurm]
spool = "/var/spool/slurmd/%n"
[jail.open]
root = "/srv/jails/open"
` + allOff + `[[jail.open.user_mounts]]
source = "/data"
[jail.closed]
root = "/srv/jails/closed"
` + defaults + `[[jail.closed.user_mounts]]
source = "/data"
[jail.owned]
root = "/srv/jails/owned"
` + defaults + `[[jail.owned.user_mounts]]
source = "/data"
`

// configure replaces the first matching line of gojail.toml for the rest of the test.
func (s *site) configure(t *testing.T, line, with string) {
	t.Helper()
	require.Contains(t, configuration, line+"\n")
	require.NoError(t, s.WriteConfig(strings.Replace(configuration, line+"\n", with+"\n", 1)))
	t.Cleanup(func() { require.NoError(t, s.WriteConfig(configuration)) })
}

// closeJails lets only root enter the jails' directory on the node, as --jail-root=range requires.
func (s *site) closeJails(t *testing.T) {
	t.Helper()
	dir := s.Path("/srv/jails")
	require.NoError(t, os.Chmod(dir, 0o700))
	t.Cleanup(func() { require.NoError(t, os.Chmod(dir, 0o755)) })
}

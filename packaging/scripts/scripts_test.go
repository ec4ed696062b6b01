// SPDX-License-Identifier: Apache-2.0

// Package scripts tests the maintainer scripts of the packages. What dpkg and rpm do with them is in tests/packages.
package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
)

// machine is a mount namespace with an empty /etc, /run and /var, in which commands of the node only note how they are called.
type machine struct {
	t     *testing.T
	dir   string
	begin string // what is there before the script, as a shell script
}

func newMachine(t *testing.T, begin string) *machine {
	nstest.NeedRoot(t)
	m := &machine{t: t, dir: t.TempDir(), begin: begin}
	m.addCommand("systemctl", `echo "systemctl $*" >>`+m.dir+"/calls")
	m.addCommand("gojail", "exit 0")
	return m
}

// addCommand puts a command in the place of the node's.
func (m *machine) addCommand(name, script string) {
	require.NoError(m.t, os.WriteFile(filepath.Join(m.dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

// run runs a script and then the shell script end, and returns the output of both, and of the calls of systemctl.
func (m *machine) run(end, name string, args ...string) (output, calls string, err error) {
	m.t.Helper()
	text, err := os.ReadFile(name) // not by its path: go test would take an old result for one that only another process reads
	require.NoError(m.t, err)
	path := filepath.Join(m.dir, name)
	require.NoError(m.t, os.WriteFile(path, text, 0o644))
	script := "set -e\nfor dir in /etc /run /var; do mount -t tmpfs tmpfs $dir; done\nmkdir -p /etc/default /etc/gojail /etc/ssh /etc/slurm/plugstack.conf.d /var/lib\n" +
		m.begin + "\ncode=0; sh " + path + ` "$@" || code=$?` + "\n" + end + "\nexit $code\n"
	cmd := exec.Command("unshare", append([]string{"--mount", "--propagation", "private", "sh", "-c", script, "sh"}, args...)...)
	cmd.Env = append(os.Environ(), "PATH="+m.dir+":"+os.Getenv("PATH"))
	said, err := cmd.CombinedOutput()
	called, _ := os.ReadFile(filepath.Join(m.dir, "calls"))
	os.Remove(filepath.Join(m.dir, "calls"))
	return string(said), string(called), err
}

const withSystemd = "mkdir -p /run/systemd/system"

// TestUpgradeRestartsTheExporterOnly: systemd reads the units again, and nothing is restarted that steps hang on.
func TestUpgradeRestartsTheExporterOnly(t *testing.T) {
	const reload, restart = "systemctl daemon-reload\n", "systemctl try-restart gojail-exporter.service\n"
	for args, want := range map[string]string{
		"gojail.postinst configure": reload, "gojail.postinst configure 0.0.9-1": reload + restart, "gojail.postinst abort-upgrade 0.1.0-1": reload,
		"gojail.postinst 1": reload, "gojail.postinst 2": reload + restart,
		"gojail.postrm remove": reload, "gojail.postrm upgrade 0.2.0-1": "", "gojail.prerm upgrade 0.2.0-1": "", "gojail.prerm 1": "",
	} {
		words := strings.Fields(args)
		output, calls, err := newMachine(t, withSystemd).run("", words[0], words[1:]...)
		require.NoError(t, err, "%s: %s", args, output)
		assert.Equal(t, want, calls, args)
		assert.Empty(t, output, args)
		_, calls, err = newMachine(t, "").run("", words[0], words[1:]...)
		require.NoError(t, err, args)
		assert.Empty(t, calls, "%s: in an image that is being built", args)
	}
	m := newMachine(t, withSystemd)
	m.addCommand("systemctl", "exit 1")
	output, _, err := m.run("", "gojail.postinst", "configure", "0.0.9-1")
	assert.NoError(t, err, "systemd's error fails no upgrade: %s", output)
}

// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSlurmdDynamic runs the script with a slurmd and a gojail that print how they are called: as each release's slurmd.service
// has slurmd started, with what the node has, and no other slurmd than the unit's.
func TestSlurmdDynamic(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
		return path
	}
	const standIn = "#!/bin/sh\nprintf '%s' \"${0##*/bin/}\"\nprintf ' [%s]' \"$@\"\n"
	text, err := os.ReadFile("slurmd-dynamic")
	require.NoError(t, err)
	script := write("slurmd-dynamic", strings.ReplaceAll(string(text), "/usr/local/sbin/gojail", filepath.Join(dir, "gojail")))
	write("gojail", "#!/bin/sh\n[ \"$*\" = node-conf ] && echo 'Gres=gpu:2 Feature=jail_debian'\n")
	opt := write("opt/bin/slurmd", strings.Replace(standIn, "${0##*/bin/}", "opt", 1))
	write("bin/slurmd", strings.Replace(standIn, "${0##*/bin/}", "path", 1))
	run := func(env []string, args ...string) (string, error) {
		cmd := exec.Command("/bin/sh", append([]string{script}, args...)...)
		cmd.Env = append(env, "PATH="+dir+"/bin:/usr/bin:/bin")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	const conf = " [-Z] [--conf] [Gres=gpu:2 Feature=jail_debian]"
	for _, test := range []struct {
		env, args []string
		want      string
	}{
		{nil, []string{opt, "-N", "n 1"}, "opt [-N] [n 1] [-D] [-s]" + conf},
		{[]string{"NOTIFY_SOCKET=/run/systemd/notify"}, []string{opt, "--conf-server", "h:6817"}, "opt [--conf-server] [h:6817] [--systemd]" + conf},
		{[]string{"NODE_CONF=Weight=10 CPUs=2"}, []string{opt}, "opt [-D] [-s]" + strings.TrimSuffix(conf, "]") + " Weight=10 CPUs=2]"},
		{[]string{"NOTIFY_SOCKET="}, []string{opt}, "opt [-D] [-s]" + conf},
		{nil, []string{"-N", "n1"}, "path [-N] [n1] [-D] [-s]" + conf}, {nil, nil, "path [-D] [-s]" + conf},
	} {
		out, err := run(test.env, test.args...)
		assert.NoError(t, err, test)
		assert.Equal(t, test.want, out, test)
	}
	out, err := run(nil, "/opt/none/slurmd")
	assert.Error(t, err)
	assert.Equal(t, "slurmd-dynamic: there is no program /opt/none/slurmd: write the path that slurmd.service has into ExecStart= of gojail-dynamic.conf\n", out)
	write("gojail", "#!/bin/sh\necho broken; exit 1\n")
	out, err = run(nil, opt)
	assert.Error(t, err)
	assert.Empty(t, out, "slurmd is not started without knowing what the node has")
}

// TestDynamicDropInHasTheUnitsSlurmd compares the drop-in with the slurmd.service of each release that is here.
func TestDynamicDropInHasTheUnitsSlurmd(t *testing.T) {
	text, err := os.ReadFile("slurmd-dynamic.conf")
	require.NoError(t, err)
	own := regexp.MustCompile(`(?m)^ExecStart=/usr/local/lib/gojail/slurmd-dynamic (/\S+) \$SLURMD_OPTIONS$`).FindSubmatch(text)
	require.NotNil(t, own)
	roots, err := filepath.Glob("../../build/cache/slurm-[0-9][0-9].[0-9][0-9]")
	require.NoError(t, err)
	for _, root := range append(roots, "/") {
		unit := filepath.Join(root, "usr/lib/systemd/system/slurmd.service")
		text, err := os.ReadFile(unit)
		require.NoError(t, err, "make deps installs slurmd")
		assert.Contains(t, string(text), "\nExecStart="+string(own[1])+" ", unit)
	}
}

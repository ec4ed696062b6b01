// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/healthcheck/check"
	"github.com/gojail/gojail/healthcheck/config"
)

// TestListNHCLines: list says what a run will not do, before one does not do it.
func TestListNHCLines(t *testing.T) {
	config, dir := site(t, "nhc = \"DIR/nhc.conf\"\n[check.nhc-command]\ntimeout = \"4s\"\n")
	path := filepath.Join(dir, "nhc.conf")
	require.NoError(t, os.WriteFile(path, []byte(`* || export NHC_CHECK_ALL=1 MARK_OFFLINE=0
* || check_hw_eth eth0
* || MARK_OFFLINE=1; check_hw_eth eth1
* || HOSTNAME="$HOSTNAME_S"
* || check_cmd_output '/bin/cat -b'
* || check_cmd_status -t 3 /bin/true
* || check_cmd_status -t 2 /bin/true
* || check_fs_mount -r -f / -f /run/user/7
* || check_fs_mount -f /run/user/7
* || SITE=1 check_hw_eth eth2
* || check_hw_eth eth2 | cat
`), 0o600))
	out, _, err := call("list", "--config", config)
	require.NoError(t, err)
	for _, want := range []string{
		`1     setting      export NHC_CHECK_ALL=1 MARK_OFFLINE=0   # write drain = false in \[slurm\] of health.toml`,
		`2     nhc          check_hw_eth eth0   # does not drain`,
		`3     ignored      MARK_OFFLINE=1`,
		`3     nhc          check_hw_eth eth1`,
		`4     ignored      HOSTNAME="\$HOSTNAME_S"`,
		`5     nhc-command  check_cmd_output '/bin/cat -b'   # /bin/cat: there is no program with that name; write -e '/bin/cat -b'; may take 5s, but a run has 3s; raise timeout in \[check.nhc-command\]`,
		`6     nhc-command  check_cmd_status -t 3 /bin/true   # may take 3s, but a run has 3s; raise timeout in \[check.nhc-command\]`,
		`7     nhc-command  check_cmd_status -t 2 /bin/true`,
		`8     nhc          check_fs_mount -r -f / -f /run/user/7   # /run/user/7 comes and goes with sessions of its user; take it out; ignored: -r`,
		`9     not parsed   check_fs_mount -f /run/user/7   # /run/user/7 comes and goes with sessions of its user; take it out`,
		`10    nhc          SITE=1 check_hw_eth eth2   # the setting SITE has no counterpart`,
		`11    not parsed   check_hw_eth eth2 | cat   # "| cat" requires bash; write a check_\* with plain words`,
	} {
		assert.Regexp(t, `(?m)^`+want+`$`, out)
	}
}

// TestListSysconfig: list names each variable of NHC's sysconfig file, before the lines of nhc.conf.
func TestListSysconfig(t *testing.T) {
	_, dir := site(t, "")
	require.NoError(t, os.MkdirAll(dir+"/default", 0o755))
	require.NoError(t, os.WriteFile(dir+"/default/nhc", []byte("# ours\nTIMEOUT=60 DETACHED_MODE=1\nCONFFILE=/etc/nhc/site.conf\nMARK_OFFLINE=0\n. /opt/x\n"), 0o600))
	require.NoError(t, os.WriteFile(dir+"/nhc.conf", []byte("* || check_hw_eth eth0\n"), 0o600))
	c := &config.Config{}
	c.NHC = dir + "/nhc.conf"
	var out bytes.Buffer
	roots := check.NodeRoots()
	roots.Etc = dir
	require.NoError(t, writeNHCLines(&out, c, roots))
	assert.Equal(t, strings.ReplaceAll(`
LINE  CHECK       DIR/default/nhc
2     ignored     TIMEOUT=60 DETACHED_MODE=1
3     ignored     CONFFILE=/etc/nhc/site.conf
4     setting     MARK_OFFLINE=0   # write drain = false in [slurm] of health.toml
5     not parsed  . /opt/x   # only NHC's bash runs .
3     not parsed  CONFFILE   # NHC reads /etc/nhc/site.conf, and gojail DIR/nhc.conf; write nhc = "/etc/nhc/site.conf" in health.toml

LINE  CHECK  DIR/nhc.conf
1     nhc    check_hw_eth eth0   # does not drain
`, "DIR", dir), out.String())
}

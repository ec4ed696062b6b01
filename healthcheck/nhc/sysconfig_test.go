// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	plainValue = " requires bash; write NAME=value with a plain value"
	mayEnd     = "; faults of nhc.conf do not drain, since NHC may end here"
)

// sysconfigTable has sysconfig files of NHC, whether a fault of an nhc.conf after them drains, and the problems of their
// commands: "" none.
var sysconfigTable = []struct {
	text     string
	drains   bool
	problems string
}{
	{"", true, ""},
	{"\n# MARK_OFFLINE=0\n   # x\n", true, ""},
	{"MARK_OFFLINE=0", false, asksNot},
	{"  MARK_OFFLINE='0'  # for now", false, asksNot},
	{"export MARK_OFFLINE=0\nNHC_RM=slurm", false, asksNot + "; "},
	{"MARK_OFFLINE=no", false, asksNot},
	{"MARK_OFF\\\nLINE=0", false, asksNot},
	{"MARK_OFFLINE=1\r", false, asksNot}, // no number for bash
	{"MARK_OFFLINE=0; MARK_OFFLINE=1", true, asksNot + "; "},
	{"MARK_OFFLINE=1", true, ""},
	{"MARK_OFFLINE=\\\n1", true, ""},
	{`MARK_OFFLINE=1\ ; :`, true, "; "},
	{`MARK_OFFLINE=0\ ; :`, false, asksNot + "; "},
	{"readonly MARK_OFFLINE=0\nMARK_OFFLINE=1", false, asksNot + "; "},
	{"MARK_OFFLINE=0\ndeclare MARK_OFFLINE=1", false, asksNot + "; "}, // of the function that reads the file
	{"MARK_OFFLINE=0\ndeclare -g MARK_OFFLINE=1", false, asksNot + "; "},

	// NHC's defaults come after this file: an empty value is none.
	{"MARK_OFFLINE=", true, ""},
	{`MARK_OFFLINE=""`, true, ""},
	{"MARK_OFFLINE=0\nunset MARK_OFFLINE", true, asksNot + "; "},
	{"NHC_RM=", true, ""},
	{"OFFLINE_NODE=", true, ""},

	// Who is told of faults.
	{"NHC_RM=slurm", true, ""},
	{"NHC_RM=pbs", true, ""},
	{"NHC_RM=sge", false, "with NHC_RM=sge NHC drains nothing: faults do not drain"},
	{"NHC_RM=none", false, "NHC_RM names no resource manager: faults from here on do not drain"},
	{"OFFLINE_NODE=:", false, "OFFLINE_NODE does not run: faults from here on do not drain"},
	{"OFFLINE_NODE=/usr/libexec/nhc/node-mark-offline", true, ""},
	{"EVAL_LINE='check_hw_eth eth0'", false, "with EVAL_LINE NHC reads no nhc.conf: faults of its lines do not drain"},

	// What has no meaning here, and no effect.
	{"TIMEOUT=120\nDETACHED_MODE=1\nDETACHED_MODE_FAIL_NODATA=1\nNHC_CHECK_ALL=1\nNHC_CHECK_FORKED=1\nLOGFILE='>>/var/log/x 2>&1'\nRESULTFILE=/run/x", true, "; ; ; ; ; ; "},
	{`TS=1 SILENT=0 VERBOSE=1 DEBUG=0; HELPERDIR=/opt/nhc INCDIR=/opt/scripts FORCE_SETSID=0 ONLINE_NODE=: SLURM_SINFO=/opt/slurm/bin/sinfo`, true, "; "},
	{"PATH=/opt/slurm/bin:$PATH", true, "PATH does not reach commands; write their absolute paths"},
	{"SITE=1", true, "the setting SITE has no counterpart"},
	{"DF_FLAGS=-Tkal", true, "the setting DF_FLAGS has no counterpart"},

	// Which nhc.conf NHC reads.
	{"CONFFILE=/etc/nhc/nhc.conf", true, ""},
	{"CONFDIR=/etc/nhc/", true, ""},
	{"CONFFILE=/etc/nhc//./nhc.conf", true, ""},
	{"CONFFILE=/opt/nhc.conf", true, `; NHC reads /opt/nhc.conf, and gojail /etc/nhc/nhc.conf; write nhc = "/opt/nhc.conf" in health.toml`},
	{"CONFDIR=/opt", true, `; NHC reads /opt/nhc.conf, and gojail /etc/nhc/nhc.conf; write nhc = "/opt/nhc.conf" in health.toml`},
	{"NAME=gpu", true, `; NHC reads /etc/nhc/gpu.conf, and gojail /etc/nhc/nhc.conf; write nhc = "/etc/nhc/gpu.conf" in health.toml`},
	{"CONFFILE=$CONFDIR/x.conf", true, "; only bash knows which nhc.conf NHC reads; gojail reads /etc/nhc/nhc.conf"},
	{"CONFDIR=/etc/nhc/$(hostname -s)", true, "; only bash knows which nhc.conf NHC reads; gojail reads /etc/nhc/nhc.conf"},

	// What only bash can evaluate: a request that may be there is one, and none is taken back after it.
	{"MARK_OFFLINE=$X", false, asksNot},
	{"MARK_OFFLINE=${MARK_OFFLINE:-1}", false, asksNot},
	{"MARK_OFFLINE=`cat /etc/drain`", false, asksNot},
	{"X=${MARK_OFFLINE:=0}", false, "X may set MARK_OFFLINE: faults from here on do not drain"},
	{"export TS=$((MARK_OFFLINE=0))", false, "TS may set MARK_OFFLINE: faults from here on do not drain"},
	{"declare -n MARK_OFFLINE=X", false, `"declare -n MARK_OFFL"` + plainValue + mayNot},
	{"[[ -e / ]] && MARK_OFFLINE=0", false, "only NHC's bash runs [[" + mayNot},
	{"test -e / && export MARK_OFFLINE=0", false, "only NHC's bash runs test" + mayNot},
	{"if true; then\nMARK_OFFLINE=0\nfi", false, "only NHC's bash runs if; " + asksNot + "; only NHC's bash runs fi"},
	{"MARK_OFFLINE=0\nif false; then\n  MARK_OFFLINE=1\nfi", false, asksNot + "; only NHC's bash runs if; ; only NHC's bash runs fi"},
	{"MARK_OFFLINE=0\ncase $HOSTNAME in\nx) MARK_OFFLINE=1;;\nesac", false, asksNot + "; only NHC's bash runs case; \") MARK_OFFLINE=1;;\"" + plainValue + mayNot + "; only NHC's bash runs esac"},
	{"MARK_OFFLINE=0\nf() {\nMARK_OFFLINE=1\n}", false, asksNot + "; \"() {\"" + plainValue + "; ; only NHC's bash runs }"},
	{"MARK_OFFLINE=0\n: <<X\nMARK_OFFLINE=1\nX", false, asksNot + "; \"<<X\"" + plainValue + "; ; only NHC's bash runs X"},
	{"MARK_OFFLINE=0\nSITE='a\nMARK_OFFLINE=1\n'", false, asksNot + "; a quote is not closed; ; a quote is not closed"},
	{"MARK_OFFLINE=0\nreturn 0\nMARK_OFFLINE=1", false, asksNot + "; only NHC's bash runs return; "},
	{"eval MARK_OFFLINE=0", false, "only NHC's bash runs eval" + mayNot},
	{"check_hw_eth eth0", true, "only NHC's bash runs check_hw_eth"},
	{"ulimit -c 0", true, "only NHC's bash runs ulimit"},
	{". /nothing", true, "only NHC's bash runs ."},
	{"exit 0", false, "only NHC's bash runs exit" + mayEnd},
	{"[ -e /nothing ] || exit 0", false, `"|| exit 0"` + plainValue + mayEnd},
	{"test -e / && exec true", false, "only NHC's bash runs test" + mayEnd},
}

// askBash reports whether a fault drains the node after bash has read a sysconfig file as NHC has it read.
func askBash(t *testing.T, text string) bool {
	path := filepath.Join(t.TempDir(), "nhc")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	cmd := exec.Command("bash", "-c", `read_it() { . "$1"; }; read_it "$1"
		: "${NHC_RM:=slurm}" "${OFFLINE_NODE:=/x/node-mark-offline}"; [ "$MARK_OFFLINE" ] || MARK_OFFLINE=1
		case $NHC_RM in slurm|pbs|lsf) [[ $MARK_OFFLINE -eq 1 && ${OFFLINE_NODE##*/} = node-mark-offline && -z $EVAL_LINE ]] && echo drains;; esac`, "bash", path)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	out, _ := cmd.Output()
	return string(out) == "drains\n"
}

// TestSysconfig: where a fault does not drain with NHC, it does not here; of the variables each is known, or named.
func TestSysconfig(t *testing.T) {
	for _, c := range sysconfigTable {
		lines := ParseBoth("/etc/sysconfig/nhc", c.text, "/etc/nhc/nhc.conf", "* || check_hw_eth eth0", "n1")
		last := lines[len(lines)-1]
		require.Equal(t, "line 1", last.Place(), c.text)
		assert.Equal(t, c.drains, !last.NonFatal, c.text)
		if !askBash(t, c.text) {
			assert.True(t, last.NonFatal, "NHC does not drain: %s", c.text)
		}
		var problems []string
		for _, l := range lines[:len(lines)-1] {
			assert.Contains(t, l.Place(), "/etc/sysconfig/nhc line ")
			problems = append(problems, l.Problem)
		}
		assert.Equal(t, c.problems, strings.Join(problems, "; "), c.text)
	}
}

// TestSysconfigBeforeConf: a line of nhc.conf changes what the sysconfig file says, where it does in NHC.
func TestSysconfigBeforeConf(t *testing.T) {
	for _, c := range []struct {
		sysconfig, conf string
		drains          bool
	}{
		{"MARK_OFFLINE=0", "* || export MARK_OFFLINE=1", true},
		{"MARK_OFFLINE=0", "n2 || export MARK_OFFLINE=1", false},
		{"MARK_OFFLINE=1", "* || export MARK_OFFLINE=0", false},
		{"MARK_OFFLINE=", "* || MARK_OFFLINE=", false}, // empty is no default there
		{"readonly MARK_OFFLINE=0", "* || export MARK_OFFLINE=1", false},
		{"typeset -gr MARK_OFFLINE=0", "* || export MARK_OFFLINE=1", false},
		{"NHC_RM=sge", "* || export MARK_OFFLINE=1", false},
		{"exit", "* || export MARK_OFFLINE=1", false},
		{"EVAL_LINE=x", "* || export EVAL_LINE= MARK_OFFLINE=1", false},
	} {
		lines := ParseBoth("/s", c.sysconfig, "/etc/nhc/nhc.conf", c.conf+"\n* || check_hw_eth eth0", "n1")
		assert.Equal(t, c.drains, !lines[len(lines)-1].NonFatal, "%s, %s", c.sysconfig, c.conf)
	}
}

// TestFindSysconfig: the file is the one that NHC takes.
func TestFindSysconfig(t *testing.T) {
	for files, want := range map[string]string{
		"":                                      "nhc/sysconfig/nhc",
		"default/nhc":                           "default/nhc",
		"sysconfig/x default/nhc":               "sysconfig/nhc",
		"debian_version sysconfig/nhc":          "default/nhc",
		"sysconfig/nhc sysconfig/nhc-oob":       "sysconfig/nhc-oob",
		"default/nhc default/nhcx default/grub": "default/nhc",
	} {
		etc := t.TempDir()
		for _, file := range strings.Fields(files) {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(etc, file)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(etc, file), nil, 0o600))
		}
		assert.Equal(t, filepath.Join(etc, want), FindSysconfig(etc, "/etc/nhc/nhc-oob.conf"), files)
	}
	etc := t.TempDir()
	require.NoError(t, os.MkdirAll(etc+"/default", 0o755))
	require.NoError(t, os.WriteFile(etc+"/default/grub", nil, 0o600))
	assert.Equal(t, etc+"/default/nhc", FindSysconfig(etc, "/etc/grub.conf"))
}

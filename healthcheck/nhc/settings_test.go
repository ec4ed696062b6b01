// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	asksNot  = "write drain = false in [slurm] of health.toml"
	mayNot   = "; faults from here on do not drain, since it may set MARK_OFFLINE"
	needBash = " requires bash; write a check_* with plain words"
)

// settingsTable has lines for a node n1, whether a fault of the line after them drains, and the problems of the lines
// with a setting: "" none.
var settingsTable = []struct {
	lines    string
	drains   bool
	problems string
}{
	// MARK_OFFLINE alone, in each form in which bash sets a variable.
	{"* || MARK_OFFLINE=0", false, asksNot},
	{"* || export MARK_OFFLINE=0", false, asksNot},
	{"* || export MARK_OFFLINE='0'", false, asksNot},
	{`* || export MARK_OFFLINE="0"`, false, asksNot},
	{"* || export MARK_OFFLINE=0 # for now", false, asksNot},
	{"* || export MARK_OFFLINE=", false, asksNot},
	{"* || export MARK_OFFLINE=no", false, asksNot},
	{"* || export MARK_OFFLINE=2", false, asksNot},
	{"* || declare -x MARK_OFFLINE=0", false, asksNot},
	{"* || typeset -i MARK_OFFLINE=0", false, asksNot},
	{"* || readonly MARK_OFFLINE=0", false, asksNot},
	{"* || unset MARK_OFFLINE", false, asksNot},
	{"* || unset -v MARK_OFFLINE", false, asksNot},
	{"* || export \\\nMARK_OFFLINE=0", false, asksNot},
	{"\ufeff* || export MARK_OFFLINE=0", false, asksNot},
	{"* || export MARK_OFFLINE=0\r", false, asksNot},
	{"* || export MARK_OFFLINE=1", true, ""},
	{"* || MARK_OFFLINE=1", true, ""},
	{"* || export MARK_OFFLINE='1'", true, ""},
	{"* || export MARK_OFFLINE=01", true, ""},
	{"* || MARK_OFFLINE=1\u00a0", false, asksNot}, // blanks of other kinds are none of bash's
	{"* || MARK_OFFLINE=1\r # x", false, asksNot},
	{"* || MARK_OFFLINE=1\v; TS=1", false, asksNot + "; "},
	{"* || declare -r MARK_OFFLINE=0\n* || MARK_OFFLINE=1", false, asksNot + "; "},
	{"* || TS=${MARK_OFFLINE:=0}", false, "TS may set MARK_OFFLINE: faults from here on do not drain"},
	{"* || declare -n X=MARK_OFFLINE; X=0", false, `"declare -n X=MARK_OF"` + needBash + mayNot},
	{"* || export MARK_OFFLINE", true, ""},
	{"* || export -n MARK_OFFLINE", true, ""},

	// Several settings on one line.
	{"* || export NHC_CHECK_ALL=1 MARK_OFFLINE=0", false, asksNot},
	{"* || export MARK_OFFLINE=0 NHC_CHECK_ALL=1", false, asksNot},
	{"* || export MARK_OFFLINE=1 NHC_CHECK_ALL=0", true, ""},
	{"* || NHC_CHECK_ALL=1 MARK_OFFLINE=0", false, asksNot},
	{"* || export TS='a b' MARK_OFFLINE=0", false, asksNot},
	{"* || export NHC_CHECK_ALL=1; export MARK_OFFLINE=0", false, "; " + asksNot},
	{"* || export NHC_CHECK_ALL=1 && MARK_OFFLINE=0", false, "; " + asksNot},
	{"* || export NHC_CHECK_ALL=1; MARK_OFFLINE=0; export TS=1", false, "; " + asksNot + "; "},
	{"* || export SITE=x MARK_OFFLINE=0", false, "the setting SITE has no counterpart; " + asksNot},
	{"* || : ; export MARK_OFFLINE=0", false, "; " + asksNot},

	// The order, and the node.
	{"* || MARK_OFFLINE=0\n* || MARK_OFFLINE=1", true, asksNot + "; "},
	{"* || MARK_OFFLINE=1\n* || MARK_OFFLINE=0", false, "; " + asksNot},
	{"* || readonly MARK_OFFLINE=0\n* || MARK_OFFLINE=1", false, asksNot + "; "},
	{"n2 || MARK_OFFLINE=0", true, ""},
	{"!n1 || MARK_OFFLINE=0", true, ""},
	{"!n2 || MARK_OFFLINE=0", false, asksNot},
	{"n[1-3] || MARK_OFFLINE=0", false, asksNot},
	{"{n[1-3]} || MARK_OFFLINE=0", false, asksNot},
	{"{n[2-3]} || MARK_OFFLINE=0", true, ""},
	{"/^n1$/ || MARK_OFFLINE=0", false, asksNot},
	{"# * || MARK_OFFLINE=0", true, ""},
	{"MARK_OFFLINE=0", false, "write TARGET || CHECK"},
	{"|| MARK_OFFLINE=0", false, "write TARGET || CHECK"},
	{"MARK_OFFLINE=1", true, "write TARGET || CHECK"},
	{"{n1,login} || MARK_OFFLINE=0", false, `the target "{n1,login}": "login" is neither a node name with a number nor a range such as n[01-20]`},
	{"n1,n2 || MARK_OFFLINE=0", false, `the target "n1,n2": no host name matches; write a {list,of,nodes} or a /regular expression/`},
	{"n1 n2 || check_hw_eth x", true, `the target "n1 n2": no host name matches; write a {list,of,nodes} or a /regular expression/`},
	{"n1,n2 || MARK_OFFLINE=1", true, `the target "n1,n2": no host name matches; write a {list,of,nodes} or a /regular expression/`},

	// What only bash can evaluate may ask not to drain.
	{"* || export MARK_OFFLINE=$X", false, asksNot},
	{"* || export MARK_OFFLINE=${X:-1}", false, asksNot},
	{`* || export MARK_OFFLINE="$(cat /etc/drain)"`, false, asksNot},
	{"* || export MARK_OFFLINE=`cat /etc/drain`", false, asksNot},
	{"* || export MARK_OFFLINE=$((1-1))", false, asksNot},
	{"* || MARK_OFFLINE+=0", false, asksNot},
	{"* || MARK_OFFLINE[0]=0", false, asksNot},
	{"* || if [[ -e /x ]]; then MARK_OFFLINE=0; fi", false, "unknown check if" + mayNot},
	{"* || [[ -e /x ]] && export MARK_OFFLINE=0", false, "unknown check [[" + mayNot},
	{"* || test -e /x && export MARK_OFFLINE=0", false, "unknown check test" + mayNot},
	{"* || eval 'MARK_OFFLINE=0'", false, "unknown check eval" + mayNot},
	{"* || let MARK_OFFLINE=0", false, "unknown check let" + mayNot},
	{"* || ((MARK_OFFLINE=0))", false, `"((MARK_OFFLINE=0))"` + needBash + mayNot},
	{"* || printf -v MARK_OFFLINE 0", false, "unknown check printf" + mayNot},
	{"* || read MARK_OFFLINE <<< 0", false, `"<<< 0"` + needBash + mayNot},
	{"* || : ${MARK_OFFLINE:=0}", false, "unknown check :" + mayNot},
	{"* || export MARK_OFFLINE=0 || true", false, `"|| true"` + needBash + mayNot},
	{"* || export MARK_OFFLINE=0 >/dev/null", false, `">/dev/null"` + needBash + mayNot},
	{"* || export 'MARK_OFFLINE=0", false, "a quote is not closed" + mayNot},
	{"* || f() { MARK_OFFLINE=0; }; f", false, `"() { MARK_OFFLINE=0;"` + needBash + mayNot},
	{"* || cat <<X; MARK_OFFLINE=0", false, `"<<X; MARK_OFFLINE=0"` + needBash + mayNot},
	{"* || export $VARS MARK_OFFLINE=0", false, `"export $VARS MARK_OF"` + needBash + mayNot},
	{"* || if x; then OFFLINE_NODE=:; fi", false, "unknown check if" + mayNot},
	{"* || source /etc/nhc/site", true, "unknown check source"},
	{"* || [[ -e /x ]] && check_hw_eth eth0", true, "unknown check [["},
	{"* || export $VARS", true, `"export $VARS"` + needBash},
	{"* || export -f check_site", true, `"export -f check_site"` + needBash},
	{"* || NHC_MCHECK_DELIM=( '@@' )", true, `"( '@@' )"` + needBash},

	// A check only reads.
	{"* || check_file_contents /etc/nhc/nhc.conf '/MARK_OFFLINE=0/'", true, ""},
	{"* || check_hw_eth $X # MARK_OFFLINE=0", true, `"$X"` + needBash},

	// Another program in the place of NHC's.
	{"* || export OFFLINE_NODE=:", false, "OFFLINE_NODE does not run: faults from here on do not drain"},
	{"* || OFFLINE_NODE=/etc/nhc/mail-only", false, "OFFLINE_NODE does not run: faults from here on do not drain"},
	{"* || OFFLINE_NODE=/usr/lib/nhc/node-mark-offline", true, ""},
	{`* || OFFLINE_NODE="$HELPERDIR/node-mark-offline"`, true, ""},
	{"* || export NHC_RM=", false, "NHC_RM names no resource manager: faults from here on do not drain"},
	{"* || export NHC_RM=none", false, "NHC_RM names no resource manager: faults from here on do not drain"},
	{"* || export NHC_RM=slurm", true, ""},
	{"* || export NHC_RM=pbs", true, ""},

	// Settings that change no finding, and those that do.
	{`* || HOSTNAME="$HOSTNAME_S"`, true, ""},
	{"* || export HOSTNAME=$HOSTNAME_S", true, ""},
	{"* || HOSTNAME=$(hostname -s)", true, ""},
	{"* || export TS=1 SILENT=1 VERBOSE=0 DEBUG=$X", true, ""},
	{`* || export LOGFILE=">>/var/log/nhc.log 2>&1" TIMEOUT=60`, true, ""},
	{"* || unset DEBUG", true, ""},
	{"* || MAX_SYS_UID=499", true, ""},
	{`* || export PATH="$PATH:/opt/slurm/bin"`, true, "PATH does not reach commands; write their absolute paths"},
	{"* || DF_FLAGS=-Tkal", true, "the setting DF_FLAGS has no counterpart"},
	{"* || export SITE=1 OTHER=2", true, "the setting SITE has no counterpart; the setting OTHER has no counterpart"},
	{"* || export TS=1 SITE=2", true, "the setting SITE has no counterpart"},
	{"* || mark_offline=0", true, "the setting mark_offline has no counterpart"},
}

func TestSettings(t *testing.T) {
	for _, c := range settingsTable {
		lines := Parse(c.lines+"\n* || check_hw_eth eth0", "n1")
		last := lines[len(lines)-1]
		require.Equal(t, "check_hw_eth eth0", last.Text, c.lines)
		assert.Equal(t, c.drains, !last.NonFatal, c.lines)
		var problems []string
		for _, l := range lines[:len(lines)-1] {
			if l.Setting || l.Problem != "" {
				problems = append(problems, l.Problem)
			}
		}
		assert.Equal(t, c.problems, strings.Join(problems, "; "), c.lines)
	}
}

// TestSeveralCommands: each check of a line is evaluated, and one with a setting before it has that setting alone.
func TestSeveralCommands(t *testing.T) {
	for text, want := range map[string][]string{
		"* || check_hw_eth a; check_hw_eth b":                      {"1 0 check_hw_eth a", "1 0 check_hw_eth b"},
		"* || check_hw_eth a && check_fs_free / 3% ;":              {"1 0 check_hw_eth a", "1 1 check_fs_free / 3%"},
		"* || export TS=1; check_hw_eth a":                         {"1 =", "1 0 check_hw_eth a"},
		"* || MARK_OFFLINE=0 check_hw_eth a; check_hw_eth b":       {"1 0 MARK_OFFLINE=0 check_hw_eth a (does not drain)", "1 0 check_hw_eth b"},
		"* || MARK_OFFLINE=0; check_hw_eth a; MARK_OFFLINE=1":      {"1 ! " + asksNot, "1 0 check_hw_eth a (does not drain)", "1 ="},
		"* || TIMEOUT=60 check_hw_eth a":                           {"1 0 TIMEOUT=60 check_hw_eth a"},
		"* || DF_FLAGS=-l MARK_OFFLINE=0 check_fs_free / 3%":       {"1 1 DF_FLAGS=-l MARK_OFFLINE=0 check_fs_free / 3% (does not drain) (the setting DF_FLAGS has no counterpart)"},
		"* || check_site; check_hw_eth a":                          {"1 ! unknown check check_site", "1 0 check_hw_eth a"},
		"* || check_hw_eth a; reboot":                              {"1 ! unknown check reboot"},
		"* || check_hw_eth a;; check_hw_eth b":                     {`1 ! ";; check_hw_eth b" requires bash; write a check_* with plain words`},
		"* || ; check_hw_eth a":                                    {`1 ! a command is missing before "; check_hw_eth a"`},
		"* || check_hw_eth a & check_hw_eth b":                     {`1 ! "& check_hw_eth b" requires bash; write a check_* with plain words`},
		"* || check_file_contents /x 'a;b' \"c && d\"":             {`1 1 check_file_contents /x 'a;b' "c && d"`},
		"* || check_hw_eth a # ; reboot":                           {"1 0 check_hw_eth a # ; reboot"},
		"* || for i in 0 1; do check_hw_eth eth$i; done":           {"1 ! unknown check for"},
		"* || check_ps_loadavg ${LOAD:-\"$(nproc --all \")\")\"}":  {"1 ! \"${LOAD:-\\\"$(nproc --a\" requires bash; write a check_* with plain words"},
		"* || check_ps_loadavg $[2*4]":                             {"1 ! \"$[2*4]\" requires bash; write a check_* with plain words"},
		"* || A=check_hw_eth check_hw_eth a":                       {"1 0 A=check_hw_eth check_hw_eth a (the setting A has no counterpart)"},
		"* || check_hw_eth a\n* || \\\n* || check_hw_eth b\nn1 ||": {"1 0 check_hw_eth a", "2 ! \"|| check_hw_eth b\" requires bash; write a check_* with plain words", "4 ! write TARGET || CHECK"},
	} {
		var got []string
		for i, row := range read(text, "n1") {
			l := Parse(text, "n1")[i]
			if l.NonFatal {
				row += " (does not drain)"
			}
			for _, note := range l.Notes {
				row += " (" + note + ")"
			}
			got = append(got, row)
		}
		assert.Equal(t, want, got, text)
	}
}

// TestBlanksOfACheck: bash reads the words of a check twice, which leaves one blank of several, also within quotes.
func TestBlanksOfACheck(t *testing.T) {
	s, _ := node(t)
	fault, err := Parse("* || check_fs_mount   -f '/my    disk'", "n1")[0].Check(t.Context(), s)
	require.NoError(t, err)
	assert.Empty(t, fault)
}

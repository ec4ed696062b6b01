// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// read returns each line as "NUMBER DOMAIN TEXT", "NUMBER ! PROBLEM" or "NUMBER =".
func read(text, host string) []string {
	all := []string{}
	for _, l := range Parse(text, host) {
		switch {
		case l.Problem != "":
			all = append(all, fmt.Sprintf("%d ! %s", l.Number, l.Problem))
		case l.Setting:
			all = append(all, fmt.Sprintf("%d =", l.Number))
		default:
			all = append(all, strings.TrimSpace(fmt.Sprintf("%d %d %s %s", l.Number, l.Domain, l.Text, strings.Join(l.NotDone, " "))))
		}
	}
	return all
}

func TestParse(t *testing.T) {
	assert.Equal(t, []string{
		"4 0 check_hw_eth eth0",
		"5 1 check_fs_free / 3%",
		"7 2 check_cmd_status -r 0 /bin/true",
		"9 0 check_hw_eth a\\b",
		"10 0 check_hw_eth    eth1",
		"12 0 check_hw_eth eth3",
	}, read(`# a comment || check_hw_eth x
   # another

* || check_hw_eth eth0
	n0*	||	check_fs_free / 3%
x* || check_hw_eth eth9
/^n/ || check_cmd_status -r 0 /bin/true
!{n[00-07]} || check_nothing
* || check_hw_eth a\\b
{n[00-07]} || check_hw_eth \
   eth1
n07||check_hw_eth eth3`, "n07"))
}

func TestParseNamesWhatItDoesNotUnderstand(t *testing.T) {
	for text, want := range map[string]string{
		"check_hw_eth eth0":                      "1 ! write TARGET || CHECK",
		"|| check_hw_eth eth0":                   "1 ! write TARGET || CHECK",
		"* ||":                                   "1 ! write TARGET || CHECK",
		"* || # nothing":                         "1 ! a check is missing",
		"/(/ || check_hw_eth eth0":               "1 ! the target \"/(/\": cannot parse the pattern: error parsing regexp: missing closing ): `(?s)(`",
		"* || check_nothing":                     "1 ! unknown check check_nothing",
		"* || check_hw_eth eth0 || true":         "1 ! \"|| true\" requires bash; write a check_* with plain words",
		"* || check_ps_loadavg $((2*HW_CORES))":  "1 ! \"$((2*HW_CORES))\" requires bash; write a check_* with plain words",
		"* || [[ -e /x ]]":                       "1 ! unknown check [[",
		"* || MARK_OFFLINE=1\\\\ ;":              "1 =",
		"* || export MARK_OFFLINE=0":             "1 ! write drain = false in [slurm] of health.toml",
		"* || DF_FLAGS=-Tkal":                    "1 ! the setting DF_FLAGS has no counterpart",
		"* || export NHC_RM=slurm":               "1 =",
		"* || check_hw_eth eth0 \\":              "1 ! the line continues after the end of the file",
		"* || check_hw_eth":                      "1 ! has 0 arguments; write 1 to 1",
		"* || check_hw_physmem 1k":               "1 ! has 1 arguments; write 2 to 3",
		"* || check_hw_physmem 1k much":          "1 ! \"much\": write a size such as 1024k or 32GB",
		"* || check_hw_cpuinfo 2 x":              "1 ! \"x\": write a whole number",
		"* || check_fs_mount -t ext4":            "1 ! a file system is missing",
		"* || check_fs_mount -q /":               "1 ! unknown option -q",
		"* || check_fs_mount -f":                 "1 ! the option -f requires a value",
		"* || check_fs_mount / a b c d":          "1 ! has 5 arguments; write 1 to 4",
		"* || check_fs_size / 10%":               "1 ! \"10%\": write a size",
		"* || check_fs_free / x%":                "1 ! \"x%\": write a percentage such as 3%",
		"* || check_file_test -t 0":              "1 ! unknown test -t",
		"* || check_file_test -e":                "1 ! write at least one test and one file",
		"* || check_file_stat -m 644 /x":         "1 ! \"644\": write a mode such as 0644, with the 0",
		"* || check_file_stat -u root /x":        "1 ! \"root\": write a number",
		"* || check_file_stat /x":                "1 ! write at least one option and one file",
		"* || check_file_stat -n soon /x":        "1 ! \"soon\": write a whole number of seconds",
		"* || check_file_contents /x":            "1 ! write a file and at least one match string",
		"* || check_ps_service -u root":          "1 ! a service is missing",
		"* || check_ps_daemon":                   "1 ! has 0 arguments; write 1 to 3",
		"* || check_ps_loadavg much":             "1 ! \"much\": write a whole number",
		"* || check_net_socket -n ssh":           "1 ! an option that selects the socket is missing",
		"* || check_net_socket -p tcp x":         "1 ! \"x\" has no option before it",
		"* || check_net_ping":                    "1 ! a host is missing",
		"* || check_net_ping -c x h":             "1 ! \"x\": write a number",
		"* || check_net_ping -- -f":              "1 ! \"-f\": write a host",
		"* || check_cmd_output id":               "1 ! \"id\": write the absolute path of the command",
		"* || check_cmd_output -e 'service x'":   "1 ! \"service\": write the absolute path of the command",
		"* || check_cmd_output":                  "1 ! a command is missing",
		"* || check_cmd_status -r 256 /bin/true": "1 ! \"256\": write an exit code",
		"* || check_fs_mount -r -e 'mount /a' /": "1 0 check_fs_mount -r -e 'mount /a' / -r -e",
		"* || check_ps_service -S -u root sshd":  "1 0 check_ps_service -S -u root sshd -S",
		"* || check_fs_mount_rw -F /home":        "1 1 check_fs_mount_rw -F /home",
	} {
		assert.Equal(t, []string{want}, read(text, "n1"), text)
	}
}

// The test of findings covers each kind.
func TestEachKindIsTested(t *testing.T) {
	tested := map[string]bool{}
	for _, c := range assertions {
		name, _, _ := strings.Cut(c.check, " ")
		tested[name] = true
	}
	for name := range kinds {
		assert.True(t, tested[name], name)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"* || check_fs_mount_rw -f /\n", "{n[01-20],x1.a} || check_hw_eth 'a b' \"c\\\"d\"\n", "!/^(a|b)[[:alpha:]]{1,2}$/ || check_cmd_output -m '!/x/' -t 1 /bin/true\n",
		"a || b \\\n c", "* || check_file_stat -m 0644 -n 5 -U root /x\n", "[!]a || check_net_socket -! -l '*:22' -d sshd\n", "x", "||", "* || export A=b",
		"* || TS=1 export MARK_OFFLINE=\"${X:-$(echo ')')}\" `a` $'b' && MARK_OFFLINE+=1; check_hw_eth x # y\n", "* || declare -x A[0]=(b) | c >d",
	} {
		f.Add(text, "n01")
	}
	f.Fuzz(func(t *testing.T, text, host string) {
		s := &System{Proc: "/nowhere", Sys: "/nowhere", Etc: "/nowhere", Now: time.Now}
		// No line hides that a later one asks not to drain.
		asked := Parse(text+"\n\n* || export MARK_OFFLINE=0\n* || check_hw_eth x", host)
		require.NotEmpty(t, asked)
		freezes := strings.Contains(text, "readonly") || slices.ContainsFunc(locals, func(name string) bool { return strings.Contains(text, name) })
		require.True(t, asked[len(asked)-1].NonFatal || freezes)
		asked = ParseBoth("/s", text+"\n\nMARK_OFFLINE=0", "/etc/nhc/nhc.conf", "* || check_hw_eth x", host)
		require.True(t, asked[len(asked)-1].NonFatal || freezes)
		for _, l := range Parse(text, host) {
			require.Positive(t, l.Number)
			require.LessOrEqual(t, len(l.Text), 100)
			if l.Problem == "" && !l.Setting && l.Domain == Node { // the others look outside of what they are given
				_, _ = l.Check(context.Background(), s)
			}
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package nhc

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/internal/nstest"
)

// commandTable has checks with their faults: "" none, "?" what cannot be determined. DIR is a directory of programs.
var commandTable = []struct{ check, fault string }{
	// The output is its lines that are not empty, and an empty one at its end.
	{"check_cmd_output -m '/^$/' DIR/silent", ""},
	{"check_cmd_output -m '*' DIR/silent", ""},
	{"check_cmd_output -m '' DIR/silent", ""},
	{"check_cmd_output DIR/silent", ""},
	{"check_cmd_output -m '/./' DIR/silent", "the output of DIR/silent has no line that matches /./"},
	{"check_cmd_output -m '?*' DIR/silent", "the output of DIR/silent has no line that matches ?*"},
	{"check_cmd_output -m '!/error/' DIR/silent", ""},
	{"check_cmd_output -m '!/^$/' DIR/silent", ""},
	{"check_cmd_output -m '!*' DIR/silent", ""},
	{"check_cmd_output -m '/^$/' DIR/lines", ""},
	{"check_cmd_output -m '*' -m '/^two$/' -m 'one' DIR/lines", ""},
	{"check_cmd_output -m '!/^two$/' DIR/lines", "the output of DIR/lines has a line that matches /^two$/"},
	{"check_cmd_output -m '!*' DIR/lines", "the output of DIR/lines has a line that matches *"},
	{"check_cmd_output -m one -m three DIR/lines", "the output of DIR/lines has no line that matches three"},
	{"check_cmd_output -m '/^two$/' DIR/unended", ""},
	{"check_cmd_output -m '*err*' DIR/stderr", "the output of DIR/stderr has no line that matches *err*"},
	{"check_cmd_output -C check_site -O LINES -M 'Text' -m one DIR/lines", ""},

	// Exit codes, and which fault comes first.
	{"check_cmd_output -r 3 DIR/fails", ""},
	{"check_cmd_output DIR/fails", "DIR/fails ends with code 3 instead of 0"},
	{"check_cmd_output -r 3 -m nothing DIR/fails", "the output of DIR/fails has no line that matches nothing"},
	{"check_cmd_output -m nothing DIR/fails", "DIR/fails ends with code 3 instead of 0"},
	{"check_cmd_output -m '!out*' DIR/fails", "the output of DIR/fails has a line that matches out*"},
	{"check_cmd_status -r '' DIR/silent", ""},
	{"check_cmd_status -r 3 -C x DIR/fails", ""},
	{"check_cmd_status -r 137 DIR/killed", ""},
	{"check_cmd_status DIR/killed", "DIR/killed ends with code 137 instead of 0"},
	{"check_cmd_output -r 143 -m one DIR/terminated", ""},
	{"check_cmd_status -t 60 DIR/leaves", ""},
	{"check_cmd_output -t 60 -m left DIR/leaves", ""},

	// Words.
	{"check_cmd_output -m 'a b' DIR/echo 'a b'", ""},
	{"check_cmd_output -m 'a b' -e 'DIR/echo a b'", ""},
	{"check_cmd_output -m \"'a b'\" -e \"DIR/echo 'a b'\"", ""}, // -e knows no quotes
	{"check_cmd_output 'DIR/with blank'", ""},
	{"check_cmd_output 'DIR/echo -b'", "?DIR/echo: there is no program with that name; write -e 'DIR/echo -b'"},
	{"check_cmd_output -m x \"DIR/echo -b --c\"", "?DIR/echo: there is no program with that name; write -e 'DIR/echo -b --c'"},
	{"check_cmd_status 'DIR/echo -b'", "?DIR/echo: there is no program with that name; write DIR/echo -b without quotes"},
	{"check_cmd_output 'DIR/nothing'", "?DIR/nothing: no such file or directory"},

	// What the kernel cannot run.
	{"check_cmd_output DIR/plain", "?DIR/plain: is not executable; run: chmod +x DIR/plain"},
	{"check_cmd_output DIR/text", "?DIR/text: is a text without an interpreter; write #!/bin/bash into its first line"},
	{"check_cmd_output DIR/nointerp", "?DIR/nointerp: its interpreter /nowhere/bash cannot be run"},
	{"check_cmd_output DIR/bare", "?DIR/bare: its first line names no interpreter"},
	{"check_cmd_output DIR/dos", "?DIR/dos: its lines end with carriage returns; run: sed -i 's/\\r$//' DIR/dos"},
	{"check_cmd_output DIR/alice", "?DIR/alice: belongs to uid 1000, a user, and not to root; the user may have it open; replace it by a copy: cp DIR/alice DIR/alice.new && mv -f DIR/alice.new DIR/alice"},
	{"check_cmd_output DIR/open", "?DIR/open: is writable by others (mode 0777); run: chmod go-w DIR/open"},
	{"check_cmd_output DIR", "?DIR: not a regular file"},
}

// makePrograms makes the programs of the table.
func makePrograms(t *testing.T) (dir string) {
	dir = t.TempDir()
	for name, text := range map[string]string{
		"silent": "#!/bin/sh\n", "lines": "#!/bin/sh\nprintf 'one\\n\\ntwo\\n'\n", "unended": "#!/bin/sh\nprintf 'one\\ntwo'\n",
		"stderr": "#!/bin/sh\necho an error >&2\n", "fails": "#!/bin/sh\necho output\nexit 3\n", "killed": "#!/bin/sh\nkill -9 $$\n",
		"terminated": "#!/bin/sh\necho one\nkill -15 $$\n", "leaves": "#!/bin/sh\necho left\ncat <DIR/fifo &\n", "echo": "#!/bin/sh\necho \"$@\"\n",
		"with blank": "#!/bin/sh\n", "plain": "#!/bin/sh\n", "text": "echo x\n", "nointerp": "#!/nowhere/bash\n", "bare": "#!\n",
		"dos": "#!/bin/sh\r\n", "alice": "#!/bin/sh\n", "open": "#!/bin/sh\n",
	} {
		require.NoError(t, os.WriteFile(dir+"/"+name, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o755))
	}
	require.NoError(t, exec.Command("mkfifo", dir+"/fifo").Run())
	require.NoError(t, os.Chmod(dir+"/plain", 0o644))
	require.NoError(t, os.Chown(dir+"/alice", 1000, 1000))
	require.NoError(t, os.Chmod(dir+"/open", 0o777))
	return dir
}

func TestCommands(t *testing.T) {
	nstest.NeedRoot(t)
	dir := makePrograms(t)
	left, err := os.OpenFile(dir+"/fifo", os.O_RDWR, 0)
	require.NoError(t, err)
	defer left.Close() // ends the processes that a program has left
	s := &System{Now: time.Now, Command: func(ctx context.Context, name string, args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.WaitDelay = time.Second // as internal/command
		return cmd.Output()
	}}
	for _, c := range commandTable {
		check := strings.ReplaceAll(c.check, "DIR", dir)
		l := Parse("* || "+strings.ReplaceAll(check, `\`, `\\`), "n1")[0]
		require.Empty(t, l.Problem, check)
		got, err := l.Check(t.Context(), s)
		if err != nil {
			got = "?" + err.Error()
		}
		got = strings.ReplaceAll(got, dir, "DIR")
		assert.Equal(t, c.fault, got, check)
		obstacle := l.FindObstacle(s) // as list says it beforehand
		assert.Equal(t, strings.HasPrefix(c.fault, "?"), obstacle != nil, check)
		if obstacle != nil {
			assert.Equal(t, c.fault, "?"+strings.ReplaceAll(obstacle.Error(), dir, "DIR"))
		}
	}
	assert.EqualError(t, Parse("* || check_net_ping n2", "n1")[0].FindObstacle(&System{pings: []string{dir + "/alice"}}), "no ping program is owned by root")
	assert.NoError(t, Parse("* || check_hw_eth eth0", "n1")[0].FindObstacle(s))
}

// TestContentsOfContinuedLines: bash's read joins lines that end with a backslash.
func TestContentsOfContinuedLines(t *testing.T) {
	path := t.TempDir() + "/file"
	require.NoError(t, os.WriteFile(path, []byte("  a \\\n b\\\nc\nlast\\"), 0o644))
	for match, want := range map[string]string{"'a  bc'": "has no line that matches a bc", "'/^a  *bc$/'": "", "last": "", "'/^b/'": "has no line that matches /^b/"} {
		fault, err := Parse("* || check_file_contents "+path+" "+match, "n1")[0].Check(t.Context(), &System{})
		require.NoError(t, err)
		assert.Equal(t, want, strings.TrimPrefix(fault, path+" "), match)
	}
}

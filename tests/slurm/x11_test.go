// SPDX-License-Identifier: Apache-2.0

package slurm_test

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

const (
	cookie = "0123456789abcdef0123456789abcdef"
	// display is an X server, in so far as it listens where one would and answers clients that have begun. Slurm may
	// lose what a server writes at once before it closes (_half_duplex of 24.11.5, seen without a jail).
	display = `$s = IO::Socket::INET->new(Listen => 5, LocalAddr => "127.0.0.1:6010", ReuseAddr => 1) or die $!;
while ($c = $s->accept) { if (defined(<$c>)) { print $c "hello\n"; <$c> } close $c }`
	// window is an X program, in so far as it finds the server and the cookie.
	window = `n=${DISPLAY#*:}; exec 3<>/dev/tcp/localhost/$((6000 + ${n%.*})); echo begin >&3; read -r line <&3; echo "$line"; exec 3>&-
stat -c '%U %a' $XAUTHORITY; tail -c16 $XAUTHORITY | od -An -tx1 | tr -d ' '`
)

// TestX11: what srun --x11 forwards is there in a jail, with the cookie that the server asks for.
func TestX11(t *testing.T) {
	options := jailed
	options.Constrain = true
	options.SlurmConf = maps.Clone(jailed.SlurmConf)
	options.SlurmConf["PrologFlags"] = "X11"
	c := harness.Start(t, options)
	if r := c.Run(harness.Alice, "/usr/bin/xauth", "-q", "add", "head/unix:10", ".", cookie); r.Code != 0 {
		t.Skip("needs xauth, which Slurm starts: " + r.Stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	server := c.Exec(ctx, harness.Command{Args: []string{"perl", "-MIO::Socket", "-e", display}})
	require.NoError(t, server.Start())
	defer server.Wait()
	defer cancel()
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		return c.Root("bash", "-c", "exec 3<>/dev/tcp/localhost/6010").Code == 0
	}))
	for _, jail := range []string{"none", "debian"} {
		r := c.Do(harness.Command{User: harness.Alice, Env: []string{"DISPLAY=localhost:10.0"},
			Args: []string{"srun", "-Q", "--x11", "-wn1", "-n2", "--jail=" + jail, "bash", "-c", window}})
		assert.Zero(t, r.Code, r)
		assert.Equal(t, "alice_600 alice_600 cookie cookie hello hello", sortLines(strings.ReplaceAll(r.Stdout, cookie, "cookie")), "%s: %v", jail, r)
	}
	// Of its own, a file of that kind is not brought: the variable is the user's.
	writeOnNode(t, c, "/tmp/.Xauthority-others", "x")
	require.Zero(t, c.Root("chown", "bob:", "/tmp/.Xauthority-others").Code)
	r := c.Do(harness.Command{User: harness.Alice, Env: []string{"XAUTHORITY=/tmp/.Xauthority-others"},
		Args: []string{"srun", "-Q", "-wn1", "--jail=debian", "ls", "-A", "/tmp"}})
	requireOutput(t, "", r)
}

// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gojail/gojail/tests/harness"
)

const (
	// serverPort is where the editor's server listens, in the network of the job, which is the node's.
	serverPort = "4033"

	// install is the script that the editor's ssh sends to a shell: it starts the server unless that runs, and prints its pid.
	install = `cat >/tmp/server <<'END'
use IO::Socket::INET;
$SIG{PIPE} = "IGNORE";
my $l = IO::Socket::INET->new(Listen => 9, LocalAddr => "127.0.0.1:` + serverPort + `", ReuseAddr => 1) or die $!;
open my $jail, "<", "/etc/gojail-jail"; my $name = <$jail>; chomp $name;
while (my $c = $l->accept) { print $c "$$ in $name\n"; close $c }
END
if ! kill -0 $(cat /tmp/server.pid) 2>/dev/null; then
	nohup perl /tmp/server editor-server >/tmp/server.log 2>&1 </dev/null & echo $! >/tmp/server.pid
fi
until (exec 3<>/dev/tcp/127.0.0.1/` + serverPort + `) 2>/dev/null; do sleep 0.1; done
echo "server $(cat /tmp/server.pid)"
cat
`

	// ask prints what the server says that a client reaches by a SOCKS proxy (RFC 1928).
	ask = `use IO::Socket::INET; my $s = IO::Socket::INET->new("127.0.0.1:$ARGV[0]") or die $!; my $b;
print $s "\5\1\0"; read $s, $b, 2; print $s pack("C8n", 5, 1, 0, 1, 127, 0, 0, 1, $ARGV[1]); read $s, $b, 10; print <$s>`
)

// connectEditor makes a connection as an editor does that works on another machine: a script to a shell's stdin, which stays open, and a proxy to what
// that starts. Further sessions use the connection by the socket /tmp/editor-PROXY. It returns the server's pid in the job.
func (s *site) connectEditor(t *testing.T, port, proxy string) (client *exec.Cmd, server string) {
	t.Helper()
	log := "/tmp/editor-log-" + proxy
	clean := func() { s.Root("rm", "-f", "/tmp/install", log, "/tmp/editor-"+proxy) }
	clean() // what the connection before has left
	t.Cleanup(clean)
	require.NoError(t, os.WriteFile(s.Path("/tmp/install"), []byte(install), 0o644))
	args := append(listSSHArguments("ssh", port), "-T", "-A", "-M", "-S", "/tmp/editor-"+proxy, "-D", proxy, "alice@127.0.0.1", "bash")
	client = s.startInBackground(t, harness.Alice, "ssh-agent", "bash", "-c", "ssh-add -q ~/.ssh/id_ed25519; "+
		"(cat /tmp/install; sleep 1000) | "+strings.Join(args, " ")+" >"+log+" 2>&1")
	var found []string
	require.True(t, harness.Poll(harness.Timeout, func() bool {
		text, _ := os.ReadFile(s.Path(log))
		found = regexp.MustCompile(`(?m)^server (\d+)$`).FindStringSubmatch(string(text))
		return found != nil
	}), "%v", s.Root("cat", log))
	return client, found[1]
}

// TestEditorBySSH requires that a server that a session has started is reached through the connection, outlives it, is found by the next
// one, and ends with the job. Sessions that share a connection are in the jail, and have its forwarded agent.
func TestEditorBySSH(t *testing.T) {
	s := sharedSite(t)
	for port, proxy := range map[string]string{shells: "4031", forced: "4032"} {
		job := s.startJob(t, harness.Alice, "--jail=debian")
		client, server := s.connectEditor(t, port, proxy)
		reach := func() harness.Result { return s.Run(harness.Alice, "perl", "-e", ask, proxy, serverPort) }
		requireOutput(t, server+" in debian", reach())
		shared := append(listSSHArguments("ssh", port), "-A", "-S", "/tmp/editor-"+proxy, "alice@127.0.0.1", "cat /etc/gojail-jail; ssh-add -l | cut -d' ' -f1; kill -0 "+server+" && echo sees it")
		requireOutput(t, "debian\n256\nsees it", s.Run(harness.Alice, shared...))

		require.NoError(t, client.Cancel()) // the connection breaks
		require.True(t, harness.Poll(harness.Timeout, func() bool { return s.Run(harness.Alice, "perl", "-e", ask, proxy, serverPort).Code != 0 }))
		_, again := s.connectEditor(t, port, proxy)
		assert.Equal(t, server, again, "another server after a new connection")
		requireOutput(t, server+" in debian", reach())
		s.endJob(t, job)
		assert.True(t, harness.Poll(harness.Timeout, func() bool { return len(s.Find("editor-server")) == 0 }), "%v", s.Find("editor-server"))
	}
}
